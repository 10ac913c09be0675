//! The ladder of cores: what the kernels of a problem are written with on a GPU, and what takes its
//! place where they fail.

use fusion_cost_model::Core;
use fusion_cost_model::calibration::{FailedCore, KernelFailure};
use serde::{Deserialize, Serialize};

/// Which cores the kernels of a run may be written with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CoreChoice {
    /// The device has nothing to choose.
    #[default]
    None,
    /// This one, and where its kernels fail, those below it.
    From(Core),
    /// This one alone: the user has named it.
    Only(Core),
}

/// On which core both variants of a problem run, and on which their kernels failed before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ladder {
    /// The core; `None` where there is nothing to choose.
    pub core: Option<Core>,
    /// Those above it, from the best on.
    pub failed: Vec<FailedCore>,
    /// The user has named the core, so there is nothing below it.
    #[serde(default)]
    is_fixed: bool,
}

impl Ladder {
    /// Its top.
    #[must_use]
    pub const fn of(choice: CoreChoice) -> Self {
        let (core, is_fixed) = match choice {
            CoreChoice::None => (None, true),
            CoreChoice::From(core) => (Some(core), false),
            CoreChoice::Only(core) => (Some(core), true),
        };
        Self { core, failed: Vec::new(), is_fixed }
    }

    /// Keeps in mind how the kernels failed on the core, and goes down to the next one; whether there
    /// is one.
    pub fn fail(&mut self, failure: KernelFailure, reason: &str) -> bool {
        let Some(core) = self.core else { return false };
        self.failed.push(FailedCore { core, failure, reason: reason.to_owned() });
        self.descend()
    }

    /// Goes down to the next core; whether there is one.
    pub fn descend(&mut self) -> bool {
        let next = self.core.and_then(Core::next).filter(|_| !self.is_fixed);
        if next.is_some() {
            self.core = next;
        }
        next.is_some()
    }

    /// Whether there is a core below.
    #[must_use]
    pub fn has_next(&self) -> bool {
        !self.is_fixed && self.core.and_then(Core::next).is_some()
    }

    /// How all of it failed: the reason alone where there was only one core.
    #[must_use]
    pub fn in_words(&self, reason: &str) -> String {
        match &self.failed[..] {
            [] | [_] => reason.to_owned(),
            failed => {
                let each: Vec<String> = failed.iter().map(ToString::to_string).collect();
                each.join("; ")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_descended_rung_by_rung() {
        let mut ladder = Ladder::of(CoreChoice::From(Core::Wgmma));
        assert!(ladder.fail(KernelFailure::Hung, "no answer"));
        assert_eq!(ladder.in_words("no answer"), "no answer");
        assert_eq!(ladder.core, Some(Core::Mma));
        assert!(ladder.descend() && ladder.core == Some(Core::Plain));
        assert!(!ladder.fail(KernelFailure::Wrong, "off by 1"));
        assert_eq!(ladder.in_words("off by 1"), "wgmma: hung: no answer; plain: wrong: off by 1");
    }

    #[test]
    fn what_the_user_names_has_nothing_below_it_and_neither_has_a_cpu() {
        for choice in [CoreChoice::Only(Core::Mma), CoreChoice::None] {
            let mut ladder = Ladder::of(choice);
            assert!(!ladder.fail(KernelFailure::Launch, "no"));
            assert_eq!(ladder.core, Ladder::of(choice).core);
        }
    }
}
