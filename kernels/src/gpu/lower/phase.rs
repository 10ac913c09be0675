//! Kernels as text: phases with their parameters.

use std::fmt::Write as _;

use fusion_cost_model::DType;
use twox_hash::XxHash3_64;

use crate::gpu::launch::{LaunchShape, TensorMap};
use crate::gpu::plan::{Argument, Code, KernelPlan};
use crate::gpu::tensors::{Role, TensorId, TensorTable};

/// Threads of every block, except for kernels of one phase that choose for themselves. A multiple
/// of every warp width.
pub(super) const THREADS: u32 = 256;

/// The parameters of a kernel: the fields of its struct `Args`.
#[derive(Debug, Clone, Default)]
pub(super) struct Parameters {
    fields: Vec<(&'static str, Argument)>,
}

impl Parameters {
    /// A tensor that is only read, as an expression of the type `const T*`.
    pub(super) fn read(&mut self, id: TensorId) -> String {
        self.field("const T*", Argument::Tensor(id))
    }

    /// A tensor that is written too, as an expression of the type `T*`.
    pub(super) fn write(&mut self, id: TensorId) -> String {
        self.field("T*", Argument::Tensor(id))
    }

    /// A tensor of something else than the problem's numbers.
    pub(super) fn pointer(&mut self, ctype: &'static str, id: TensorId) -> String {
        self.field(ctype, Argument::Tensor(id))
    }

    /// A size, as an expression of the type `i64`. Sizes are parameters, so that one compiled
    /// kernel serves problems of many sizes.
    pub(super) fn size(&mut self, value: u64) -> String {
        // Not shared between equal sizes: the text would depend on which ones are equal.
        self.fields.push(("i64", Argument::Size(value)));
        format!("args.p{}", self.fields.len() - 1)
    }

    /// A size that is 1 in most problems, and is then written out, so that nothing is computed with it.
    pub(super) fn factor(&mut self, value: u64) -> String {
        if value == 1 { "1".to_owned() } else { self.size(value) }
    }

    /// A matrix for the TMA, as an expression of the type `const TensorMap&`.
    pub(super) fn map(&mut self, map: TensorMap) -> String {
        self.field("TensorMap", Argument::Map(map))
    }

    fn field(&mut self, ctype: &'static str, argument: Argument) -> String {
        let known = self.fields.iter().position(|field| *field == (ctype, argument));
        let index = known.unwrap_or_else(|| {
            self.fields.push((ctype, argument));
            self.fields.len() - 1
        });
        format!("args.p{index}")
    }
}

/// A part of a kernel that does tiles, each with one block and independent of the others.
#[derive(Debug, Clone)]
pub(super) struct Phase {
    /// What it computes and how, in letters, digits and underscores.
    pub(super) name: String,
    /// Headers of `kernels/gpu/` in addition to `port.h` and `number.h`.
    pub(super) headers: Vec<&'static str>,
    /// Definitions that it needs, such as the struct of its tail. Names must be unique in the
    /// kernel.
    pub(super) definitions: String,
    /// A statement that does the tile `tile` (an `i64`) with `args`. It may use all of
    /// `port::shared()`, and must leave no thread reading there what the next tile overwrites.
    pub(super) tile: String,
    /// How many tiles there are.
    pub(super) tiles: u64,
    /// Threads of its blocks.
    pub(super) threads: u32,
    /// Bytes of shared memory.
    pub(super) shared_bytes: u32,
    /// Blocks of a cluster; more than one only in a kernel of this phase alone.
    pub(super) cluster: u32,
}

/// The name of a dtype in kernels.
pub(super) fn ctype(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "port::f16",
        DType::Bf16 => "port::bf16",
        _ => "float",
    }
}

/// A kernel of some phases, one after the other.
pub(super) fn kernel(
    phases: Vec<Phase>,
    mut parameters: Parameters,
    dtype: DType,
    table: &mut TensorTable,
) -> KernelPlan {
    let cooperative = phases.len() > 1;
    let threads = phases.iter().map(|phase| phase.threads).max().unwrap_or(THREADS);
    let shared_bytes = phases.iter().map(|phase| phase.shared_bytes).max().unwrap_or(0);
    let tiles = phases.iter().map(|phase| phase.tiles).max().unwrap_or(0);
    let mut headers: Vec<&str> = vec!["port.h", "number.h"];
    let copies = phases.iter().flat_map(|phase| &phase.headers).any(|it| it.starts_with("hopper/"));
    let sync = if copies { "port::hopper::sync_phases" } else { "port::sync_grid" };
    let mut definitions = String::new();
    let mut body = String::new();
    let barrier = cooperative
        .then(|| parameters.pointer("unsigned int*", table.add(BARRIER_BYTES, Role::Counters)));
    for (index, phase) in phases.iter().enumerate() {
        for &header in &phase.headers {
            if !headers.contains(&header) {
                headers.push(header);
            }
        }
        definitions.push_str(&phase.definitions);
        if let (Some(barrier), 1..) = (&barrier, index) {
            let _ = writeln!(body, "    {sync}({barrier});");
        }
        let count = parameters.size(phase.tiles);
        let _ = writeln!(
            body,
            "    for (i64 tile = port::block(); tile < {count}; tile += port::blocks()) {{\n        \
             {}\n    }}",
            phase.tile
        );
    }
    let mut text = String::new();
    for header in headers {
        let _ = writeln!(text, "#include \"{header}\"");
    }
    let _ = writeln!(text, "using T = {};", ctype(dtype));
    let _ = writeln!(text, "struct Args {{");
    // Tensor maps first: they must be aligned.
    parameters.order_maps_first(&mut body, &mut definitions);
    for (index, (ctype, _)) in parameters.fields.iter().enumerate() {
        let _ = writeln!(text, "    {ctype} p{index};");
    }
    let _ = writeln!(text, "}};\n{definitions}");
    let cluster = phases.iter().map(|phase| phase.cluster).max().unwrap_or(1);
    let head = match cluster {
        1 => format!("PORT_KERNEL(ENTRY, Args, {threads})"),
        _ => format!("PORT_CLUSTER_KERNEL(ENTRY, Args, {threads}, {cluster})"),
    };
    let _ = writeln!(text, "{head} {{\n{body}}}");

    let names: Vec<&str> = phases.iter().map(|phase| phase.name.as_str()).collect();
    let digest = XxHash3_64::oneshot(text.as_bytes());
    let entry = format!("{}_{digest:016x}", names.join("__"));
    KernelPlan {
        code: Code { text: text.replace("ENTRY", &entry), entry },
        shape: LaunchShape { grid: grid_of(tiles), threads, shared_bytes, cooperative, cluster },
        arguments: parameters.fields.into_iter().map(|(_, argument)| argument).collect(),
    }
}

/// Two counters: how many blocks have arrived, and how often all have.
const BARRIER_BYTES: u64 = 8;

/// As many blocks as tiles, within the limits of every device: y and z have fewer bits than x, and
/// kernels go through what is more in a loop.
fn grid_of(tiles: u64) -> [u32; 3] {
    const MOST: u64 = (1 << 31) - 1;
    [u32::try_from(tiles.clamp(1, MOST)).unwrap_or(1), 1, 1]
}

impl Parameters {
    /// Moves tensor maps to the front and renames all fields in the texts accordingly.
    fn order_maps_first(&mut self, body: &mut String, definitions: &mut String) {
        let is_map = |field: &(&str, Argument)| matches!(field.1, Argument::Map(_));
        let (maps, others): (Vec<_>, Vec<_>) =
            (0..self.fields.len()).partition(|&index| is_map(&self.fields[index]));
        let order: Vec<usize> = maps.into_iter().chain(others).collect();
        if order.is_sorted() {
            return;
        }
        // Over names that no field has, so that none is renamed twice.
        for text in [body, definitions] {
            for (new, &old) in order.iter().enumerate().rev() {
                *text = replace_word(text, &format!("args.p{old}"), &format!("args.q{new}"));
            }
            *text = text.replace("args.q", "args.p");
        }
        self.fields = order.iter().map(|&index| self.fields[index]).collect();
    }
}

/// Replaces a name that is not the beginning of a longer one.
fn replace_word(text: &str, from: &str, to: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(from) {
        let end = at + from.len();
        let longer = rest[end..].starts_with(|next: char| next.is_ascii_digit());
        replaced.push_str(&rest[..at]);
        replaced.push_str(if longer { from } else { to });
        rest = &rest[end..];
    }
    replaced.push_str(rest);
    replaced
}
