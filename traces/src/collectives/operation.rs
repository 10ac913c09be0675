//! What a collective does, by the name of its kernel or of the operator that launched it.

use serde::Serialize;

use crate::classify::Words;

/// What a kernel that communicates does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Every rank gets the sum of all.
    AllReduce,
    /// Every rank gets the parts of all.
    AllGather,
    /// Every rank gets a part of the sum of all.
    ReduceScatter,
    /// Every rank gets a part of the data of each.
    AllToAll,
    /// Every rank waits for all.
    Barrier,
    /// Every rank gets the data of one.
    Broadcast,
    /// One rank gets the sum of all.
    Reduce,
    /// From rank to rank.
    SendRecv,
    /// Tokens go to their experts.
    Dispatch,
    /// The outputs of experts go back.
    Combine,
    /// Neither the kernel nor its operator says.
    Unnamed,
}

/// Which ranks take part in an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Participation {
    /// All of a group, and none can end before the last has come.
    All,
    /// Perhaps only some of them.
    Some,
    /// All of a group, but those that only send, or the one that does, can go on before the others
    /// have come.
    Root,
}

/// What names contain, without `_`, in the order in which it is looked for.
const NAMES: &[(&str, Operation)] = &[
    ("reducescatter", Operation::ReduceScatter),
    ("allgather", Operation::AllGather),
    ("alltoall", Operation::AllToAll),
    ("all2all", Operation::AllToAll),
    ("allreduce", Operation::AllReduce),
    ("crossdevicereduce", Operation::AllReduce),
    ("dispatch", Operation::Dispatch),
    ("combine", Operation::Combine),
    ("a2a", Operation::AllToAll),
    ("twoshot", Operation::AllReduce),
    ("oneshot", Operation::AllReduce),
    ("lamport", Operation::AllReduce),
    ("broadcast", Operation::Broadcast),
    ("barrier", Operation::Barrier),
    ("sendrecv", Operation::SendRecv),
    ("send", Operation::SendRecv),
    ("recv", Operation::SendRecv),
    ("reduce", Operation::Reduce),
];

/// What NCCL and RCCL put in front of the names of their kernels.
const PREFIXES: [&str; 3] = ["nccl_symk_dev_kernel_", "nccl_dev_kernel_", "nccl_kernel_"];

impl Operation {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::AllReduce,
        Self::AllGather,
        Self::ReduceScatter,
        Self::AllToAll,
        Self::Barrier,
        Self::Broadcast,
        Self::Reduce,
        Self::SendRecv,
        Self::Dispatch,
        Self::Combine,
        Self::Unnamed,
    ];

    /// The name in reports and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::AllToAll => "all_to_all",
            Self::Barrier => "barrier",
            Self::Broadcast => "broadcast",
            Self::Reduce => "reduce",
            Self::SendRecv => "send_recv",
            Self::Dispatch => "dispatch",
            Self::Combine => "combine",
            Self::Unnamed => "unnamed",
        }
    }

    /// Which ranks take part. What has no name counts as one of all: most are, and kernels that do
    /// not end together are not taken for one collective anyway.
    #[must_use]
    pub const fn participation(self) -> Participation {
        match self {
            Self::AllReduce
            | Self::AllGather
            | Self::ReduceScatter
            | Self::AllToAll
            | Self::Barrier
            | Self::Unnamed => Participation::All,
            Self::SendRecv | Self::Dispatch | Self::Combine => Participation::Some,
            Self::Broadcast | Self::Reduce => Participation::Root,
        }
    }

    /// The operation that a kernel or an operator is called after.
    #[must_use]
    pub fn of(name: &str) -> Self {
        Self::in_words(&Words::of(name))
    }

    fn in_words(words: &Words) -> Self {
        let joined = words.base.replace('_', "");
        let found = NAMES.iter().find(|(part, _)| joined.contains(part));
        found.map_or(Self::Unnamed, |(_, operation)| *operation)
    }
}

/// Kernels of one operation and one implementation of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Family {
    pub(super) operation: Operation,
    /// The words of the name, with what they say of the type of data, the algorithm and the
    /// protocol: `all_reduce_sum_bf16_ring_ll`.
    pub(super) kernel: String,
}

impl Family {
    /// The family of a kernel, whose operator is asked if its name says nothing, or only that it
    /// sends: NCCL's all-to-all is made of transfers.
    pub(super) fn of(name: &str, operator: impl FnOnce() -> Option<Operation>) -> Self {
        let words = Words::of(name);
        let operation = match Operation::in_words(&words) {
            unclear @ (Operation::Unnamed | Operation::SendRecv) => operator().unwrap_or(unclear),
            known => known,
        };
        let base = words.base.trim_matches('_');
        let base = PREFIXES.iter().find_map(|prefix| base.strip_prefix(prefix)).unwrap_or(base);
        let arguments = words.arguments.trim();
        let space = if arguments.is_empty() { "" } else { " " };
        Self { operation, kernel: format!("{base}{space}{arguments}") }
    }

    /// Whether kernels of both could be the same collective on two ranks. Of the launch of a kernel
    /// without a correlation id nothing is known, and its operation may be known on one rank only.
    pub(super) fn may_be(&self, other: &Self) -> bool {
        let is_unnamed = |family: &Self| family.operation == Operation::Unnamed;
        self.kernel == other.kernel
            && (self.operation == other.operation || is_unnamed(self) || is_unnamed(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_all_libraries_have_their_operations() {
        let kernels = [
            (
                "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                Operation::AllReduce,
                "all_reduce_sum_bf16_ring_ll",
            ),
            (
                "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
                Operation::AllReduce,
                "all_reduce_ring_ll_sum_float",
            ),
            (
                "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                Operation::ReduceScatter,
                "reduce_scatter_sum_bf16_ring_ll",
            ),
            (
                "ncclDevKernel_AllGather_RING_SIMPLE(ncclDevKernelArgsStorage<4096ul>)",
                Operation::AllGather,
                "all_gather_ring_simple",
            ),
            (
                "ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
                Operation::Broadcast,
                "broadcast_ring_ll_sum_int8_t",
            ),
            (
                "ncclDevKernel_Reduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                Operation::Reduce,
                "reduce_sum_f32_ring_ll",
            ),
            (
                "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
                Operation::SendRecv,
                "send_recv",
            ),
            (
                "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 4>(vllm::RankData*)",
                Operation::AllReduce,
                "cross_device_reduce_1stage __nv_bfloat16 4",
            ),
            (
                "void aiter::reduce_scatter_cross_device_store<__hip_bfloat16, 8>(Params)",
                Operation::ReduceScatter,
                "reduce_scatter_cross_device_store __hip_bfloat16 8",
            ),
            (
                "void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<float, 16, 8>()",
                Operation::AllReduce,
                "two_shot_all_reduce_kernel_inplace float 16 8",
            ),
            (
                "void deep_ep::internode_ll::dispatch<true, false, 7168>(void*, void*)",
                Operation::Dispatch,
                "dispatch true false 7168",
            ),
            (
                "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)",
                Operation::Unnamed,
                "generic_1",
            ),
        ];
        for (name, operation, kernel) in kernels {
            let expected = Family { operation, kernel: kernel.to_owned() };
            assert_eq!(Family::of(name, || None), expected, "{name}");
        }
        let names = [
            (
                "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>()",
                Operation::AllReduce,
            ),
            (
                "_ZN11quickreduce27allreduce_prototype_twoshotINS_16AllReduceTwoshotIDF16bEEEEv",
                Operation::AllReduce,
            ),
            ("EpCombineLowLatencyAsyncSendCopy_bf16", Operation::Combine),
            ("void nvshmem_fused::all_to_all_vdev_2d_kernel(void*)", Operation::AllToAll),
            ("void c10d::symmetric_memory::barrier_kernel(unsigned int**)", Operation::Barrier),
            ("", Operation::Unnamed),
        ];
        for (name, operation) in names {
            assert_eq!(Operation::of(name), operation, "{name}");
        }
    }

    #[test]
    fn operators_name_what_kernels_do_not() {
        let operators = [
            ("c10d::allreduce_", Operation::AllReduce),
            ("c10d::_allgather_base_", Operation::AllGather),
            ("c10d::_reduce_scatter_base_", Operation::ReduceScatter),
            ("c10d::alltoall_base_", Operation::AllToAll),
            ("c10d::send", Operation::SendRecv),
            ("c10d::recv_", Operation::SendRecv),
            ("c10d::reduce_", Operation::Reduce),
            ("_c10d_functional::all_reduce", Operation::AllReduce),
            ("record_param_comms", Operation::Unnamed),
        ];
        for (name, operation) in operators {
            assert_eq!(Operation::of(name), operation, "{name}");
        }
        let generic = "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)";
        let summed = Family::of(generic, || Some(Operation::AllReduce));
        assert_eq!(summed.operation, Operation::AllReduce);
        let unknown = Family::of(generic, || None);
        assert!(summed.may_be(&unknown) && unknown.may_be(&summed));
        assert!(!summed.may_be(&Family::of(generic, || Some(Operation::AllGather))));
        assert!(!summed.may_be(&Family::of("ncclDevKernel_Generic_2(int)", || None)));
    }

    #[test]
    fn names_are_those_of_files() {
        for operation in Operation::ALL {
            let text = serde_json::to_string(&operation).unwrap();
            assert_eq!(text, format!("\"{}\"", operation.name()));
        }
    }
}
