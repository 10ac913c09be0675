//! The traces of a run over several processes.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use super::{Plan, Truth, write};

/// Writes one trace for each of a number of ranks into a folder, which must exist: `rank0.json` and
/// so on. Their kernels are the same, their times are not.
///
/// # Errors
///
/// When a file cannot be written.
pub fn write_ranks(plan: &Plan, folder: &Path, ranks: u64) -> io::Result<Vec<(PathBuf, Truth)>> {
    let digits = ranks.saturating_sub(1).to_string().len();
    let one = |rank: u64| {
        let seed = plan.seed.wrapping_add(2 * rank);
        let plan = Plan { rank, world_size: ranks, seed, ..plan.clone() };
        // Padded, so that the order of the names is that of the ranks.
        let path = folder.join(format!("rank{rank:0digits$}.json"));
        let truth = write(&plan, &mut BufWriter::new(File::create(&path)?))?;
        Ok((path, truth))
    };
    (0..ranks).map(one).collect()
}
