//! What the processor says of itself, beyond its name.

use procfs_core::CpuInfo;

use crate::machine::system_files::{SystemFiles, is_word};

/// The first processor as `/proc/cpuinfo` describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Processor {
    /// Family, model and stepping, as `6/167/8`: one name is sold in several steppings.
    pub(crate) family_model_stepping: Option<String>,
    /// Version of the microcode: it brings and takes whole percents of speed.
    pub(crate) microcode: Option<String>,
    /// Whether a hypervisor runs below; only x86 reports it.
    pub(crate) virtualized: Option<bool>,
}

impl Processor {
    /// Reads it.
    pub(crate) fn observe(files: &SystemFiles) -> Self {
        let Some(info) = files.parsed::<CpuInfo>("proc/cpuinfo") else {
            return Self::default();
        };
        let field = |name| info.get_field(0, name);
        let number = |name| field(name)?.parse::<u32>().ok();
        let numbers = || Some((number("cpu family")?, number("model")?, number("stepping")?));
        Self {
            // A part of it would look like another processor.
            family_model_stepping: numbers()
                .map(|(family, model, stepping)| format!("{family}/{model}/{stepping}")),
            microcode: field("microcode").filter(|word| is_word(word)).map(str::to_owned),
            virtualized: field("flags")
                .map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::system_files::tests::made_up;

    fn observe(cpuinfo: &str) -> Processor {
        let (_folder, files) = made_up(&[("proc/cpuinfo", cpuinfo)]);
        Processor::observe(&files)
    }

    #[test]
    fn a_laptop_tells_everything_and_the_first_processor_counts() {
        let laptop = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 154\n\
                      model name\t: 12th Gen Intel(R) Core(TM) i7-1260P\nstepping\t: 3\n\
                      microcode\t: 0x434\nflags\t\t: fpu avx2\nvmx flags\t: hypervisor\n\n\
                      processor\t: 1\ncpu family\t: 7\nmicrocode\t: 0x1\nflags\t\t: hypervisor\n";
        let expected = Processor {
            family_model_stepping: Some("6/154/3".to_owned()),
            microcode: Some("0x434".to_owned()),
            virtualized: Some(false),
        };
        assert_eq!(observe(laptop), expected);
    }

    #[test]
    fn a_hypervisor_and_a_stepping_that_it_hides() {
        let guest = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 1\nstepping\t: unknown\n\
                     flags\t\t: fpu hypervisor avx2\n";
        let expected = Processor { virtualized: Some(true), ..Processor::default() };
        assert_eq!(observe(guest), expected);
    }

    #[test]
    fn other_architectures_and_garbage_tell_nothing() {
        let arm = "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\nCPU part\t: 0xd0c\n";
        let garbage =
            "processor\nmicrocode\t: two words\nmodel\t: -1\nflagship: hypervisor\n:::\n\u{0}";
        for text in [arm, garbage, ""] {
            assert_eq!(observe(text), Processor::default());
        }
        let (_folder, nothing) = made_up(&[]);
        assert_eq!(Processor::observe(&nothing), Processor::default());
    }
}
