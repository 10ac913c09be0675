//! Traces of listed operators, each with its inputs and one kernel.

use crate::written::{self, event};

/// An operator: its name, the sizes of its inputs, and which of them are whole numbers.
#[derive(Clone)]
pub(crate) struct Op {
    pub(crate) name: &'static str,
    pub(crate) dims: String,
    pub(crate) kernel: &'static str,
    pub(crate) ns: u64,
    pub(crate) ints: &'static [usize],
    /// The values of its inputs, where some matter.
    pub(crate) values: &'static str,
}

pub(crate) fn op(name: &'static str, dims: &str, kernel: &'static str, ns: u64) -> Op {
    let dims = dims.to_owned();
    Op { name, dims, kernel, ns, ints: &[], values: "" }
}

/// A GEMM with weights.
pub(crate) fn mm(m: u64, n: u64, k: u64) -> Op {
    let kernel = if m > 64 { "nvjet_tst_256x128_64x4" } else { "nvjet_tst_64x8_64x16" };
    op("aten::mm", &format!("[[{m}, {k}], [{k}, {n}]]"), kernel, 2000 + n * k / 1000)
}

/// A trace whose steps have these operators, each step with a mark or without.
pub(crate) fn trace(steps: &[(Option<String>, Vec<Op>)]) -> String {
    let mut text = String::new();
    let (mut id, mut host_ns, mut device_ns) = (0, 1_000_u64, 5_000_u64);
    for (mark, ops) in steps {
        let start = host_ns;
        for one in ops {
            id += 1;
            let inputs = one.dims.matches('[').count() - 1;
            let kind = |input: usize| match one.ints.contains(&input) {
                true => "\"int\"",
                false => "\"c10::BFloat16\"",
            };
            let kinds = (0..inputs).map(kind).collect::<Vec<_>>().join(", ");
            let dims = &one.dims;
            let mut args =
                format!("\"External id\": {id}, \"Input Dims\": {dims}, \"Input type\": [{kinds}]");
            if !one.values.is_empty() {
                args += &format!(", \"Concrete Inputs\": {}", one.values);
            }
            text += &event("cpu_op", one.name, (1, 1), host_ns..host_ns + 900, &args);
            let args = format!("\"External id\": {id}, \"correlation\": {id}");
            text += &event(
                "cuda_runtime",
                "cudaLaunchKernel",
                (1, 1),
                host_ns + 100..host_ns + 500,
                &args,
            );
            host_ns += 1000;
            let from = device_ns.max(host_ns);
            let args = format!("\"device\": 0, \"stream\": 7, {args}");
            text += &event("kernel", one.kernel, (0, 7), from..from + one.ns, &args);
            device_ns = from + one.ns + 10;
        }
        host_ns = host_ns.max(device_ns) + 1000;
        if let Some(mark) = mark {
            text += &event("user_annotation", mark, (1, 1), start - 100..host_ns, "");
        }
        host_ns += 1000;
    }
    written::trace("NVIDIA H100", &text)
}
