//! Sets of sizes.

use calibrate::profiles::ShapeSet;
use fusion_cost_model::DType;

use super::text;
use crate::Target;

/// Every chain of a set that is read has problems.
pub(super) const SHAPES: Target = Target {
    name: "shapes",
    seeds: || {
        [
            include_str!("../../../calibrate/profiles/shapes/quick.toml"),
            include_str!("../../../calibrate/profiles/shapes/bert-base.toml"),
        ]
        .map(Into::into)
        .to_vec()
    },
    run: |bytes| text(bytes, read),
};

fn read(text: &str) -> String {
    match ShapeSet::from_toml(text) {
        Ok(set) => {
            let chains = set.all_chains();
            for chain in &chains {
                for problem in set.problems(chain, DType::F32) {
                    assert_eq!(problem.chain(), chain);
                }
            }
            let all = set.select("all").expect("all chains");
            assert!(all.len() >= chains.len() && all.starts_with(&chains));
            String::new()
        }
        Err(error) => error.to_string(),
    }
}
