//! What kernels may assume of a GPU's instruction set.

use fusion_cost_model::Core;

/// The matrix instructions that kernels of an architecture are written with. Each is a header in
/// `kernels/gpu/matrix_core/`, and all have the same interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum MatrixCore {
    /// Fused multiply-adds of the vector lanes: what f32 runs on everywhere.
    Plain,
    /// `mma.sync` of NVIDIA from sm_80 on.
    Mma,
    /// `wgmma` with TMA of sm_90a; [`Self::Mma`] where tiles are small.
    Wgmma,
    /// `v_mfma` of gfx90a and gfx942.
    Mfma,
    /// `v_wmma` of gfx11.
    Wmma11,
    /// `v_wmma` of gfx12, whose fragments lie otherwise.
    Wmma12,
}

/// The instruction set of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Architecture {
    /// As the compiler wants it: `sm_90a`, `gfx942`.
    pub(crate) name: String,
    /// Threads that run in step: 32, or 64 on AMD's gfx9.
    pub(crate) warp: u32,
    /// The matrix instructions for f16 and bf16 that kernels are written with: the best that it has,
    /// unless another one was chosen.
    pub(crate) matrix_core: MatrixCore,
    /// The best.
    best: MatrixCore,
}

impl Architecture {
    /// An architecture with its best matrix instructions.
    pub(crate) const fn new(name: String, warp: u32, best: MatrixCore) -> Self {
        Self { name, warp, matrix_core: best, best }
    }

    /// The cores that kernels can be written with, the best first.
    pub(crate) fn cores(&self) -> impl Iterator<Item = Core> {
        std::iter::successors(Some(self.best.core()), |core| core.next())
    }

    /// The same with kernels of another core; `None` if it does not have that.
    pub(crate) fn with_core(&self, core: Core) -> Option<Self> {
        let matrix_core = match core {
            _ if core == self.best.core() => self.best,
            _ if !self.cores().any(|one| one == core) => return None,
            Core::Mma => MatrixCore::Mma,
            _ => MatrixCore::Plain,
        };
        Some(Self { matrix_core, ..self.clone() })
    }

    /// NVIDIA's of a compute capability; `None` before 7.5, which the current compilers do not
    /// know any more.
    pub(crate) fn of_compute_capability(major: u32, minor: u32) -> Option<Self> {
        let number = major * 10 + minor;
        let (suffix, matrix_core) = match number {
            90 => ("a", MatrixCore::Wgmma),
            80.. => ("", MatrixCore::Mma),
            75..80 => ("", MatrixCore::Plain),
            _ => return None,
        };
        Some(Self::new(format!("sm_{number}{suffix}"), 32, matrix_core))
    }

    /// AMD's of the name that the runtime reports, such as `gfx942:sramecc+:xnack-`; `None` for
    /// one that no kernels were written for.
    pub(crate) fn of_gfx(reported: &str) -> Option<Self> {
        let name = reported.split(':').next().unwrap_or_default();
        let (warp, matrix_core) = match name {
            "gfx90a" | "gfx940" | "gfx941" | "gfx942" | "gfx950" => (64, MatrixCore::Mfma),
            "gfx906" | "gfx908" => (64, MatrixCore::Plain),
            _ if name.starts_with("gfx10") => (32, MatrixCore::Plain),
            _ if name.starts_with("gfx11") => (32, MatrixCore::Wmma11),
            _ if name.starts_with("gfx12") => (32, MatrixCore::Wmma12),
            _ => return None,
        };
        Some(Self::new(name.to_owned(), warp, matrix_core))
    }
}

impl MatrixCore {
    /// What users and files call it.
    pub(crate) const fn core(self) -> Core {
        match self {
            Self::Plain => Core::Plain,
            Self::Mma => Core::Mma,
            Self::Wgmma => Core::Wgmma,
            Self::Mfma => Core::Mfma,
            Self::Wmma11 | Self::Wmma12 => Core::Wmma,
        }
    }

    /// What headers choose by.
    pub(crate) const fn define(self) -> &'static str {
        match self {
            Self::Plain => "PORT_CORE_PLAIN",
            Self::Mma => "PORT_CORE_MMA",
            Self::Wgmma => "PORT_CORE_WGMMA",
            Self::Mfma => "PORT_CORE_MFMA",
            Self::Wmma11 => "PORT_CORE_WMMA11",
            Self::Wmma12 => "PORT_CORE_WMMA12",
        }
    }
}

impl Architecture {
    /// The options that every compiler gets, apart from the one that says which compiler it is
    /// (`-DPORT_CUDA`, `-DPORT_HIP`, `-DPORT_HOST`).
    pub(crate) fn defines(&self) -> [String; 2] {
        [format!("-DPORT_WARP={}", self.warp), format!("-D{}", self.matrix_core.define())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nvidias_by_compute_capability() {
        for (major, minor, expected) in [
            (7, 0, None),
            (7, 5, Some(("sm_75", MatrixCore::Plain))),
            (8, 0, Some(("sm_80", MatrixCore::Mma))),
            (8, 9, Some(("sm_89", MatrixCore::Mma))),
            (9, 0, Some(("sm_90a", MatrixCore::Wgmma))),
            (10, 0, Some(("sm_100", MatrixCore::Mma))),
            (12, 0, Some(("sm_120", MatrixCore::Mma))),
        ] {
            let found = Architecture::of_compute_capability(major, minor);
            let found = found.as_ref().map(|found| (found.name.as_str(), found.matrix_core));
            assert_eq!(found, expected, "{major}.{minor}");
        }
    }

    #[test]
    fn each_has_the_cores_below_its_best() {
        let sm_90a = Architecture::of_compute_capability(9, 0).unwrap();
        for (architecture, cores) in [
            (sm_90a.clone(), &[MatrixCore::Wgmma, MatrixCore::Mma, MatrixCore::Plain][..]),
            (Architecture::of_gfx("gfx1201").unwrap(), &[MatrixCore::Wmma12, MatrixCore::Plain]),
            (Architecture::of_gfx("gfx942").unwrap(), &[MatrixCore::Mfma, MatrixCore::Plain]),
            (Architecture::of_gfx("gfx1030").unwrap(), &[MatrixCore::Plain]),
        ] {
            let of = |core| architecture.with_core(core).unwrap().matrix_core;
            assert_eq!(architecture.cores().map(of).collect::<Vec<_>>(), cores);
        }
        assert_eq!(sm_90a.with_core(Core::Mfma), None);
        // There is a way back.
        let plain = sm_90a.with_core(Core::Plain).unwrap();
        assert_eq!(plain.with_core(Core::Wgmma), Some(sm_90a));
    }

    #[test]
    fn amds_by_the_name_that_is_reported() {
        for (reported, expected) in [
            ("gfx942:sramecc+:xnack-", Some(("gfx942", 64, MatrixCore::Mfma))),
            ("gfx90a", Some(("gfx90a", 64, MatrixCore::Mfma))),
            ("gfx1100", Some(("gfx1100", 32, MatrixCore::Wmma11))),
            ("gfx1201", Some(("gfx1201", 32, MatrixCore::Wmma12))),
            ("gfx1030", Some(("gfx1030", 32, MatrixCore::Plain))),
            ("gfx803", None),
            ("", None),
        ] {
            let found = Architecture::of_gfx(reported);
            let found =
                found.as_ref().map(|found| (found.name.as_str(), found.warp, found.matrix_core));
            assert_eq!(found, expected, "{reported}");
        }
    }
}
