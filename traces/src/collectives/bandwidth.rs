//! How fast the data of collectives moved, as NCCL's tests count it.
//!
//! The bandwidth of the algorithm is the size of a collective over its time. That of the bus takes
//! into account what each link must carry for it, so that it can be compared with the link's own,
//! whatever the operation and the number of ranks: see
//! <https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md>.

use super::operation::Operation;

/// The bandwidth of the bus over that of the algorithm; none of what has none, as a barrier.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a number of ranks")]
pub(super) fn bus_factor(operation: Operation, ranks: u64) -> Option<f64> {
    let others = ranks.saturating_sub(1) as f64 / ranks.max(1) as f64;
    match operation {
        _ if ranks < 2 => None,
        Operation::AllReduce => Some(2.0 * others),
        Operation::AllGather | Operation::ReduceScatter | Operation::AllToAll => Some(others),
        Operation::Broadcast | Operation::Reduce | Operation::SendRecv => Some(1.0),
        Operation::Barrier | Operation::Dispatch | Operation::Combine | Operation::Unnamed => None,
    }
}

/// The bandwidth of the bus in gigabytes (10^9) a second, of collectives of some bytes in all.
#[expect(clippy::cast_precision_loss, reason = "for people")]
pub(super) fn bus_gb_per_s(
    operation: Operation,
    ranks: u64,
    bytes: u64,
    transfer_ns: u64,
) -> Option<f64> {
    let factor = bus_factor(operation, ranks)?;
    (bytes > 0 && transfer_ns > 0).then(|| factor * bytes as f64 / transfer_ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The factors that NCCL's tests state, for eight ranks.
    #[test]
    fn factors_of_nccl_tests() {
        for (operation, factor) in [
            (Operation::AllReduce, Some(1.75)),
            (Operation::AllGather, Some(0.875)),
            (Operation::ReduceScatter, Some(0.875)),
            (Operation::AllToAll, Some(0.875)),
            (Operation::Broadcast, Some(1.0)),
            (Operation::Reduce, Some(1.0)),
            (Operation::Barrier, None),
        ] {
            assert_eq!(bus_factor(operation, 8), factor, "{operation:?}");
            assert_eq!(bus_factor(operation, 1), None);
        }
        assert_eq!(bus_gb_per_s(Operation::AllReduce, 2, 4_000_000, 1_000_000), Some(4.0));
        assert_eq!(bus_gb_per_s(Operation::AllReduce, 2, 4_000_000, 0), None);
        assert_eq!(bus_gb_per_s(Operation::AllReduce, 2, 0, 5), None);
    }
}
