//! Writes step after step, and counts what it writes.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::Range;

use super::json::{Event, Json};
use super::random::Random;
use super::schedule::{Call, Run, Schedule, Times};
use super::step::{self, Item, Stream};
use super::{Counts, KernelTruth, Model, Oddity, Phase, Plan, Truth};
use crate::DeviceWork;

/// The process and the thread of the host.
const HOST: (u64, u64) = (851, 852);

/// The number of the only device.
const DEVICE: u64 = 0;

/// An oddity that only some events have appears in one of this many events.
const ODD_EVERY: u64 = 16;

/// AMD's library gives one in this many collectives no correlation id.
const LOST_EVERY: u64 = 3;

/// What is on the Python stack of a call.
const FRAMES: [&str; 4] = [
    "vllm/model_executor/layers/linear.py(484): forward",
    "torch/nn/modules/module.py(1751): _wrapped_call_impl",
    "vllm/model_executor/layers/quantization/unquantized_linear_method.py(196): apply",
    "torch/_ops.py(1158): __call__",
];

/// Writes a trace.
pub(super) fn trace(plan: &Plan, out: &mut impl Write) -> io::Result<Truth> {
    // Nanoseconds since 1970 in 2022, and since a start of the machine after that.
    let is_old = plan.has(Oddity::Capitalised);
    let start_ns = if is_old { 1_665_536_373_729_077_000 } else { 2_241_346_127_176_383 };
    let random = Random::new(plan.seed, if plan.has(Oddity::WholeTimes) { 1000 } else { 1 });
    let random = if plan.pace.is_some() { random.steady() } else { random };
    let schedule = Schedule::new(plan, random.whole(start_ns));
    let mut generator = Generator {
        plan,
        json: Json::new(plan, out),
        random,
        counts: Counts::default(),
        kernels: Vec::new(),
        external_id: 0,
        correlation: 50_000,
        python_id: 0,
        collectives: 0,
        args: String::new(),
    };
    generator.json.begin()?;
    generator.steps(schedule)?;
    generator.json.end()?;
    let layers = if plan.model == Model::Bag { 0 } else { plan.layers };
    Ok(Truth::new(generator.counts, plan.model, layers, generator.kernels))
}

struct Generator<'w, W> {
    plan: &'w Plan,
    json: Json<'w, W>,
    random: Random,
    counts: Counts,
    kernels: Vec<KernelTruth>,
    external_id: u64,
    correlation: u64,
    python_id: u64,
    /// Collectives with calls of their own.
    collectives: u64,
    /// The arguments of the event that is written, kept for their memory.
    args: String,
}

/// The step that a call is in, and the phase that marks give it.
type Where = (Option<u32>, Option<Phase>);

impl<W: Write> Generator<'_, W> {
    fn has(&self, oddity: Oddity) -> bool {
        self.plan.has(oddity)
    }

    fn steps(&mut self, mut schedule: Schedule<'_>) -> io::Result<()> {
        for step in 0..self.plan.steps {
            let phase = self.plan.phase(step);
            let items = step::items(self.plan, phase, &mut self.random);
            let times = schedule.step(&items, &mut self.random);
            self.marks(step, phase, "user_annotation", HOST, &times.mark)?;
            self.modules(&items, &times)?;
            let is_told = self.plan.model != Model::Training
                && self.plan.annotations.iter().any(|mark| mark.tells(phase));
            let inside = (Some(step as u32), is_told.then_some(phase));
            for call in &times.calls {
                let place = if times.mark.contains(&call.start_ns) { inside } else { (None, None) };
                self.call(call, &items, &times.runs, place)?;
            }
            if let Some(wait) = &times.wait {
                let name = if self.plan.is_amd() {
                    "hipStreamSynchronize"
                } else {
                    "cudaStreamSynchronize"
                };
                self.correlation += 1;
                self.launch("cuda_runtime", name, self.correlation, None, wait)?;
            }
            if self.plan.device_annotations {
                let ran = items.iter().zip(&times.runs).filter(|(item, _)| !item.is_after);
                let (mut start, mut end) = (u64::MAX, 0);
                for (_, run) in ran {
                    start = start.min(run.start_ns);
                    end = end.max(run.start_ns + run.duration_ns);
                }
                let place = (DEVICE, Stream::Compute.number());
                if start < end {
                    self.marks(step, phase, "gpu_user_annotation", place, &(start..end))?;
                }
            }
        }
        Ok(())
    }

    fn event(
        &mut self,
        category: &str,
        name: &[u8],
        (process, thread): (u64, u64),
        time: &Range<u64>,
    ) -> io::Result<()> {
        self.counts.events += 1;
        self.json.event(&Event {
            category,
            name,
            process,
            thread,
            start_ns: time.start,
            duration_ns: time.end - time.start,
            args: &self.args,
        })
    }

    /// Puts down the arguments of the next event.
    fn set_args(&mut self, args: std::fmt::Arguments<'_>) {
        self.args.clear();
        // A string has room for everything.
        let _ = self.args.write_fmt(args);
    }

    fn new_external_id(&mut self) -> u64 {
        self.external_id += 1;
        self.external_id
    }

    fn marks(
        &mut self,
        step: u64,
        phase: Phase,
        category: &str,
        place: (u64, u64),
        time: &Range<u64>,
    ) -> io::Result<()> {
        for (depth, annotation) in (0..).zip(&self.plan.annotations) {
            let id = self.new_external_id();
            self.set_args(format_args!("\"External id\": {id}"));
            let name = annotation.text(step, phase);
            let start = (time.start + depth * 1000).min(time.end);
            self.event(category, name.as_bytes(), place, &(start..time.end))?;
            self.counts.annotations += 1;
        }
        Ok(())
    }

    /// The modules of the layers: around the calls that launch nothing else.
    fn modules(&mut self, items: &[Item], times: &Times) -> io::Result<()> {
        if self.plan.frames == 0 {
            return Ok(());
        }
        let name = match self.plan.model {
            Model::Dense => "LlamaDecoderLayer",
            Model::MixtureOfExperts => "MixtralDecoderLayer",
            Model::StateSpace => "MambaDecoderLayer",
            Model::Hybrid => "JambaDecoderLayer",
            Model::Training => "TransformerEncoderLayer",
            Model::Bag => return Ok(()),
        };
        let block_of = |call: &Call| {
            let items = items.get(call.items.clone()).unwrap_or_default();
            let block = items.first().and_then(|item| item.block);
            block.filter(|_| items.iter().all(|item| item.block == block))
        };
        for calls in times.calls.chunk_by(|a, b| block_of(a) == block_of(b)) {
            let (Some(first), Some(last)) = (calls.first(), calls.last()) else { continue };
            let Some(block) = block_of(first) else { continue };
            let module = format!("nn.Module: {name}_{block}");
            self.frame(module.as_bytes(), &(first.op_ns..last.op_end_ns))?;
        }
        Ok(())
    }

    fn frame(&mut self, name: &[u8], time: &Range<u64>) -> io::Result<()> {
        self.python_id += 1;
        let id = self.python_id;
        self.set_args(format_args!(
            "\"Python parent id\": {}, \"Python id\": {id}, \"Ev Idx\": {id}",
            id - 1
        ));
        self.counts.frames += 1;
        self.event("python_function", name, HOST, time)
    }

    /// A call with what is around it, and what it launches.
    fn call(&mut self, call: &Call, items: &[Item], runs: &[Run], place: Where) -> io::Result<()> {
        let items = items.get(call.items.clone()).unwrap_or_default();
        let runs = runs.get(call.items.clone()).unwrap_or_default();
        let Some(first) = items.first() else { return Ok(()) };
        let around = call.op_ns..call.op_end_ns;
        for depth in 1..self.plan.frames {
            let name = FRAMES[depth as usize % FRAMES.len()];
            self.frame(name.as_bytes(), &around)?;
        }
        let is_graph = first.graph.is_some();
        let mut external = None;
        if self.plan.operators && !is_graph {
            let id = self.new_external_id();
            self.op(first.kernel.op, id, &around)?;
            external = Some(id);
        }
        let mut correlation = 0;
        let (category, name) = call_of(first, self.plan.is_amd());
        self.collectives += u64::from(first.is_collective());
        let is_lost = self.plan.is_amd()
            && first.is_collective()
            && self.collectives.is_multiple_of(LOST_EVERY);
        if !is_lost {
            self.correlation += 1;
            correlation = self.correlation;
        }
        self.launch(category, name, correlation, external, &(call.start_ns..call.end_ns))?;
        self.arrow("s", correlation, HOST, call.start_ns)?;
        for (node, (item, run)) in (1..).zip(items.iter().zip(runs)) {
            self.kernel(item, run, correlation, external, node)?;
            let stream = item.stream.number();
            self.arrow("f", correlation, (DEVICE, stream), run.start_ns)?;
            self.kernels.push(KernelTruth {
                class: item.kernel.class,
                role: item.kernel.role,
                work: item.kernel.work,
                stream,
                start_ns: run.start_ns,
                duration_ns: run.duration_ns,
                step: place.0,
                phase: place.1,
                block: item.block,
                layer: item.layer,
                is_linked: correlation != 0,
            });
        }
        Ok(())
    }

    fn op(&mut self, name: &str, id: u64, time: &Range<u64>) -> io::Result<()> {
        let is_broken = self.has(Oddity::UnescapedQuotes) && id % ODD_EVERY == 1;
        self.set_args(format_args!(
            "\"External id\": {id}, \"Record function id\": 0, \"Concrete Inputs\": [\"\", \
             \"[46, 72]\"], \"Input type\": [\"c10::BFloat16\", \"ScalarList\"], \"Input \
             Strides\": [[72, 1], []], \"Input Dims\": [[1024, 72], []], \"Ev Idx\": {id}"
        ));
        let name = if is_broken { "aten::\"mm" } else { name };
        self.event("cpu_op", name.as_bytes(), HOST, time)?;
        if is_broken {
            self.counts.broken += 1;
            self.counts.events -= 1;
        } else {
            self.counts.ops += 1;
        }
        Ok(())
    }

    fn launch(
        &mut self,
        category: &str,
        name: &str,
        correlation: u64,
        external: Option<u64>,
        time: &Range<u64>,
    ) -> io::Result<()> {
        self.set_args(format_args!(""));
        self.external(external);
        let _ = write!(self.args, "\"cbid\": 211, \"correlation\": {correlation}");
        self.counts.launches += 1;
        self.event(category, name.as_bytes(), HOST, time)
    }

    /// Adds the id of the operator, under its name of the time.
    fn external(&mut self, id: Option<u64>) {
        let key = if self.has(Oddity::Capitalised) { "external id" } else { "External id" };
        if let Some(id) = id {
            let _ = write!(self.args, "\"{key}\": {id}, ");
        }
    }

    fn kernel(
        &mut self,
        item: &Item,
        run: &Run,
        correlation: u64,
        external: Option<u64>,
        node: u64,
    ) -> io::Result<()> {
        let number = self.counts.kernels % ODD_EVERY;
        self.set_args(format_args!(""));
        if self.has(Oddity::HugeIds) && number == 3 {
            self.args.push_str("\"External id\": 99999999999999999999, ");
            self.counts.bad_ids += 1;
        } else {
            self.external(external);
        }
        let stream = item.stream.number();
        let _ = write!(
            self.args,
            "\"device\": {DEVICE}, \"stream\": {stream}, \"correlation\": {correlation}, "
        );
        self.work_args(item, run, node);
        let mut name = Cow::Borrowed(item.kernel.name(self.plan.is_amd()).as_bytes());
        if self.has(Oddity::InvalidUtf8) && number == 5 {
            name.to_mut().extend_from_slice(b"\xff\xfe");
        }
        if self.has(Oddity::ControlCharacters) && number == 7 {
            name.to_mut().push(b'\t');
        }
        self.counts.kernels += 1;
        self.counts.kernel_ns += u128::from(run.duration_ns);
        let time = run.start_ns..run.start_ns + run.duration_ns;
        self.event(item.category(), &name, (DEVICE, stream), &time)
    }

    /// Adds what the profiler says of a kernel, a copy or a fill.
    fn work_args(&mut self, item: &Item, run: &Run, node: u64) {
        let is_graph = item.graph.is_some();
        // Writing to a string does not fail.
        let _ = if item.kernel.work != DeviceWork::Kernel {
            let bytes = run.duration_ns * 20;
            write!(self.args, "\"bytes\": {bytes}, \"memory bandwidth (GB/s)\": 20.0")
        } else if self.plan.is_amd() {
            let kind = if is_graph { "Dispatch Task" } else { "Dispatch Kernel" };
            write!(
                self.args,
                "\"kind\": \"{kind}\", \"grid\": [4864, 1, 1], \"block\": [256, 1, 1]"
            )
        } else {
            if is_graph {
                let _ = write!(self.args, "\"graph id\": 3, \"graph node id\": {node}, ");
            }
            let line = if self.has(Oddity::Compact) { "" } else { "\n      " };
            write!(
                self.args,
                "{line}\"queued\": 0, \"context\": 1,{line}\"registers per thread\": 16,{line}\
                 \"shared memory\": 0,{line}\"blocks per SM\": 62.060608,{line}\"warps per SM\": \
                 992.969727,{line}\"grid\": [8192, 1, 1],{line}\"block\": [512, 1, 1],{line}\"est. \
                 achieved occupancy %\": 5"
            )
        };
    }

    fn arrow(&mut self, end: &str, id: u64, place: (u64, u64), ns: u64) -> io::Result<()> {
        self.counts.events += 1;
        self.json.arrow(end, id, place, ns)
    }
}

/// The category and the name of the call that launches something.
fn call_of(item: &Item, is_amd: bool) -> (&'static str, &'static str) {
    let name = item.kernel.name(is_amd);
    // Triton loads its kernels as modules; their names are plain identifiers.
    let is_triton = item.kernel.op.starts_with("vllm::")
        && !name.starts_with("_Z")
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let (cuda, hip) = match item.kernel.work {
        _ if item.graph.is_some() => ("cudaGraphLaunch", "hipGraphLaunch"),
        DeviceWork::Memcpy => ("cudaMemcpyAsync", "hipMemcpyAsync"),
        DeviceWork::Memset => ("cudaMemsetAsync", "hipMemsetAsync"),
        DeviceWork::Kernel if is_triton => ("cuLaunchKernel", "hipModuleLaunchKernel"),
        DeviceWork::Kernel if name.starts_with("nvjet") || name.starts_with("Cijk") => {
            ("cudaLaunchKernelExC", "hipExtModuleLaunchKernel")
        }
        DeviceWork::Kernel => ("cudaLaunchKernel", "hipLaunchKernel"),
    };
    if is_amd {
        ("cuda_runtime", hip)
    } else if cuda.starts_with("cuda") {
        ("cuda_runtime", cuda)
    } else {
        ("cuda_driver", cuda)
    }
}
