//! How this program was built: times are those of a build, not only of a source.

mod digest;
#[cfg(test)]
mod lock_file;

use fusion_cost_model::calibration::Tool;

pub use digest::binary_digest;

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What Cargo builds it as: `debug` or `release`, also of profiles that are based on these.
const PROFILE: &str = env!("CALIBRATE_PROFILE");

/// How much the compiler was asked to optimise: `0` to `3`, `s` or `z`. The kernels may have been
/// given a level of their own.
pub(crate) const OPT_LEVEL: &str = env!("CALIBRATE_OPT_LEVEL");

/// This program, for the file that it writes. `started_at` is in UTC (RFC 3339).
#[must_use]
pub fn tool(started_at: String) -> Tool {
    Tool {
        name: "calibrate".to_owned(),
        version: VERSION.to_owned(),
        build: build(),
        compiler: env!("CALIBRATE_COMPILER").to_owned(),
        compiler_flags: env!("CALIBRATE_COMPILER_FLAGS").to_owned(),
        crates: env!("CALIBRATE_CRATES").split(',').map(str::to_owned).collect(),
        started_at,
    }
}

/// Profile, optimisation and target, as `release, opt-level 3, x86_64-linux`, or as `release with debug
/// assertions, opt-level 3, x86_64-linux`.
#[must_use]
pub fn build() -> String {
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    let assertions = if cfg!(debug_assertions) { " with debug assertions" } else { "" };
    format!("{PROFILE}{assertions}, opt-level {OPT_LEVEL}, {arch}-{os}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_is_named() {
        let tool = tool("2025-01-01T00:00:00Z".to_owned());
        assert!(tool.compiler.starts_with("rustc 1."), "{}", tool.compiler);
        assert!(!tool.compiler_flags.contains('\u{1f}'));
        let profile = tool.build.split_once(", opt-level ").map(|(profile, _)| profile);
        let profile = profile.and_then(|profile| profile.split(' ').next());
        assert!(matches!(profile, Some("debug" | "release")), "{}", tool.build);
        assert!(matches!(OPT_LEVEL, "0" | "1" | "2" | "3" | "s" | "z"), "{OPT_LEVEL}");
    }

    #[test]
    fn every_crate_that_kernels_are_made_of_is_named() {
        let tool = tool(String::new());
        for name in ["gemm ", "pulp "] {
            assert!(tool.crates.iter().any(|with_version| with_version.starts_with(name)));
        }
    }
}
