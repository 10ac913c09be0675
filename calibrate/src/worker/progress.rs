//! What a worker says while it works, so that its caller knows which kernel hangs.

use std::time::Duration;

use fused_kernels::worker::Notes;
use fusion_cost_model::Problem;

/// How long a GPU's driver and its compiler may take to make the kernels and the tensors of a problem
/// ready: many times what they take.
const PREPARE_LIMIT: Duration = Duration::from_secs(3 * 60);

/// Where a worker says what it is doing, and how long a kernel may take.
pub(super) struct Progress {
    notes: Notes,
    kernel_limit: Duration,
    /// Behind every note, where a task has several problems.
    problem: Option<Problem>,
}

impl Progress {
    /// Notes, in which a kernel may take this long.
    pub(super) const fn new(notes: Notes, kernel_limit: Duration) -> Self {
        Self { notes, kernel_limit, problem: None }
    }

    /// The same of one problem, which all notes name.
    pub(super) fn of(&self, problem: Problem) -> Self {
        Self { notes: self.notes.clone(), problem: Some(problem), ..*self }
    }

    fn say(&self, doing: String, limit: Option<Duration>) {
        let doing = match self.problem {
            Some(problem) => doing + &of_problem(problem),
            None => doing,
        };
        self.notes.doing(doing, limit);
    }

    /// Says what is done from now on, in words that follow "while it".
    pub(super) fn doing(&self, doing: impl Into<String>) {
        self.say(doing.into(), None);
    }

    /// The same of what may not take longer than a kernel.
    pub(super) fn limited(&self, doing: impl Into<String>) {
        self.say(doing.into(), Some(self.kernel_limit));
    }

    /// The same of what a driver does before any kernel runs.
    pub(super) fn prepares(&self, doing: impl Into<String>) {
        self.say(doing.into(), Some(self.kernel_limit.max(PREPARE_LIMIT)));
    }

    /// How long a kernel may take.
    pub(super) const fn kernel_limit(&self) -> Duration {
        self.kernel_limit
    }

    /// Says which kernel of a GPU runs, and when it has ended `after`, which the driver prepares.
    pub(super) fn runs(&self, after: &str) -> impl FnMut(Option<&str>) {
        move |kernel| match kernel {
            Some(kernel) => self.limited(format!("ran {kernel}")),
            None => self.prepares(after),
        }
    }

    /// Says which kernel runs for the first time, and `after` when it has ended.
    pub(super) fn first_runs(&self, after: &str) -> impl FnMut(Option<&str>) {
        move |kernel| match kernel {
            Some(kernel) => self.limited(format!("ran {kernel} for the first time")),
            None => self.doing(after),
        }
    }
}

/// What a note ends with that names a problem.
pub(super) fn of_problem(problem: Problem) -> String {
    format!(" ({problem})")
}
