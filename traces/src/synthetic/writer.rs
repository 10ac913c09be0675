//! Writes events one after another, as the profiler would.

use std::io::{self, Write};

use super::{Oddity, Plan, Truth};
use crate::Vendor;

/// Kernels of a layer, in their order.
const NVIDIA_LAYER: [&str; 6] = [
    "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*, c10::BFloat16 const*, float, int)",
    "nvjet_tst_128x152_64x4_2x1_v_bz_coopA_TNN",
    "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, \
     (vllm::Fp8KVCacheDataType)0>(__nv_bfloat16 const*, __nv_bfloat16 const*, long)",
    "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64, 64, 4, false, false, \
     cutlass::bfloat16_t>, false, true>(flash::Flash_fwd_params)",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_cublas",
    "void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel\
     <c10::BFloat16>(c10::BFloat16 const&)), true>(c10::BFloat16*, c10::BFloat16 const*, int)",
];
const AMD_LAYER: [&str; 6] = [
    "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassEEEEvv",
    "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN_LDSB1_AFC1_AFEM1",
    "void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16, \
     (vllm::Fp8KVCacheDataType)0>(__hip_bfloat16 const*, __hip_bfloat16 const*, long)",
    "kernel_unified_attention_2d",
    "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT32x64x128_MI16x16x1_SN_LDSB1_AFC1_AFEM1",
    "void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel\
     <c10::BFloat16>(c10::BFloat16 const&)), true>(c10::BFloat16*, c10::BFloat16 const*, int)",
];
const OPS: [&str; 6] =
    ["vllm::rms_norm", "aten::mm", "vllm::cache", "vllm::attention", "aten::linear", "aten::silu"];

/// Every so many layers have one of the oddities that only some events have.
const ODD_EVERY: u64 = 3;

/// Writes one trace and counts what it writes.
pub(super) struct Writer<'w, W> {
    plan: &'w Plan,
    out: &'w mut W,
    truth: Truth,
    first: bool,
    clock: u64,
    random: u64,
}

/// An event that is written.
struct Item<'i> {
    category: &'i str,
    name: &'i [u8],
    place: (u64, u64),
    start_ns: u64,
    duration_ns: u64,
    args: String,
}

impl<'w, W: Write> Writer<'w, W> {
    pub(super) fn new(plan: &'w Plan, out: &'w mut W) -> Self {
        // Nanoseconds since 1970 in 2022, and since a start of the machine after that.
        let is_old = plan.oddities.contains(&Oddity::Capitalised);
        let clock = if is_old { 1_665_536_373_729_077_000 } else { 2_241_346_127_176_383 };
        // From zero, only zeros would follow.
        let random = plan.seed | 1;
        Self { plan, out, truth: Truth::default(), first: true, clock, random }
    }

    fn has(&self, oddity: Oddity) -> bool {
        self.plan.oddities.contains(&oddity)
    }

    /// A number below a bound: xorshift, enough for durations.
    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound
    }

    fn duration(&mut self, least: u64) -> u64 {
        let duration = least + self.below(50_000);
        if self.has(Oddity::WholeTimes) { duration / 1000 * 1000 } else { duration }
    }

    pub(super) fn trace(mut self) -> io::Result<Truth> {
        if self.has(Oddity::BareList) {
            self.list()?;
            return Ok(self.truth);
        }
        write!(self.out, "{{")?;
        let is_last = self.has(Oddity::MetadataLast);
        if !is_last {
            self.metadata()?;
            write!(self.out, ", ")?;
        }
        write!(self.out, "\"traceEvents\": ")?;
        if self.has(Oddity::DictOfLists) {
            write!(self.out, "{{\"0\": ")?;
            self.list()?;
            write!(self.out, ", \"1\": []}}")?;
        } else {
            self.list()?;
        }
        if is_last {
            write!(self.out, ", ")?;
            self.metadata()?;
        }
        writeln!(self.out, "}}")?;
        Ok(self.truth)
    }

    fn list(&mut self) -> io::Result<()> {
        write!(self.out, "[")?;
        self.steps()?;
        write!(self.out, "]")
    }

    fn metadata(&mut self) -> io::Result<()> {
        let is_amd = self.plan.vendor == Vendor::Amd;
        let (name, warp) = if is_amd { ("AMD Instinct MI300X", 64) } else { ("NVIDIA H100", 32) };
        let name = if self.has(Oddity::EmptyNames) { "" } else { name };
        write!(self.out, "\"schemaVersion\": 1, \"deviceProperties\": [")?;
        if !self.has(Oddity::NoDevices) {
            write!(
                self.out,
                "{{\"id\": 0, \"name\": \"{name}\", \"totalGlobalMem\": 206141652992, \
                 \"computeMajor\": 9, \"computeMinor\": 4, \"warpSize\": {warp}, \"numSms\": 304}}"
            )?;
        }
        let version = if is_amd { "roctracer_version" } else { "cupti_version" };
        write!(
            self.out,
            "], \"{version}\": 22, \"with_stack\": 1, \"record_shapes\": 1, \"distributedInfo\": \
             {{\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 8}}, \"traceName\": \
             \"data/trace.json\", \"displayTimeUnit\": \"ms\", \"baseTimeNanoseconds\": \
             1751410836000000000"
        )
    }

    fn steps(&mut self) -> io::Result<()> {
        for step in 0..self.plan.steps {
            let start = self.clock;
            for layer in 0..self.plan.layers {
                self.layer(step, layer)?;
            }
            let name = format!("ProfilerStep#{step}");
            let end = self.clock;
            for (category, place) in
                [("user_annotation", (10, 10)), ("gpu_user_annotation", (0, 7))]
            {
                self.event(&Item {
                    category,
                    name: name.as_bytes(),
                    place,
                    start_ns: start,
                    duration_ns: (end - start) / 1000 * 1000,
                    args: format!("\"External id\": {}", step + 1),
                })?;
                self.truth.annotations += 1;
            }
        }
        Ok(())
    }

    fn layer(&mut self, step: u64, layer: u64) -> io::Result<()> {
        let is_amd = self.plan.vendor == Vendor::Amd;
        let names = if is_amd { AMD_LAYER } else { NVIDIA_LAYER };
        let launch = if is_amd { "hipLaunchKernel" } else { "cudaLaunchKernel" };
        let is_odd = layer % ODD_EVERY == ODD_EVERY - 1;
        for (index, (kernel, op)) in (0..).zip(names.iter().zip(OPS)) {
            let id = 1 + (step * self.plan.layers + layer) * 6 + index;
            let correlation = if self.has(Oddity::Graphs) { id - index } else { id };
            self.op(op, id, is_odd && index == 1)?;
            for frame in 0..self.plan.frames {
                let name = format!("nn.Module: DecoderLayer_{layer}");
                let args = format!("\"Python id\": {frame}, \"Python module id\": {layer}");
                self.host("python_function", name.as_bytes(), args)?;
                self.truth.frames += 1;
            }
            let is_huge = is_odd && index == 2 && self.has(Oddity::HugeIds);
            let external = if is_huge { "99999999999999999999".to_owned() } else { id.to_string() };
            self.truth.bad_ids += u64::from(is_huge);
            let args = format!("\"cbid\": 211, \"correlation\": {correlation}");
            self.host("cuda_runtime", launch.as_bytes(), args)?;
            self.truth.launches += 1;
            self.arrow("s", correlation, launch)?;
            let mut name = kernel.as_bytes().to_vec();
            if is_odd && index == 3 && self.has(Oddity::InvalidUtf8) {
                name.extend_from_slice(b"\xff\xfe");
            }
            if is_odd && index == 4 && self.has(Oddity::ControlCharacters) {
                name.push(b'\t');
            }
            self.kernel(&name, correlation, &external)?;
            self.arrow("f", correlation, launch)?;
        }
        Ok(())
    }

    fn op(&mut self, name: &str, id: u64, may_break: bool) -> io::Result<()> {
        let is_broken = may_break && self.has(Oddity::UnescapedQuotes);
        let name = if is_broken { "aten::\"mm" } else { name };
        let args = format!(
            "\"External id\": {id}, \"Record function id\": 0, \"Concrete Inputs\": [\"\", \
             \"[46, 72]\"], \"Input type\": [\"c10::BFloat16\", \"ScalarList\"], \"Input \
             Strides\": [[72, 1], []], \"Input Dims\": [[1024, 72], []], \"Ev Idx\": {id}"
        );
        self.host("cpu_op", name.as_bytes(), args)?;
        if is_broken {
            self.truth.broken += 1;
            self.truth.events -= 1;
        } else {
            self.truth.ops += 1;
        }
        Ok(())
    }

    fn host(&mut self, category: &str, name: &[u8], args: String) -> io::Result<()> {
        let duration_ns = self.duration(1000);
        let start_ns = self.clock;
        self.clock += 2000;
        self.event(&Item { category, name, place: (851, 852), start_ns, duration_ns, args })
    }

    fn kernel(&mut self, name: &[u8], correlation: u64, external: &str) -> io::Result<()> {
        let duration_ns = self.duration(2000);
        let args = format!(
            "\"External id\": {external}, \"device\": 0, \"stream\": 7, \"correlation\": \
             {correlation}, \"registers per thread\": 16, \"grid\": [8192, 1, 1], \"block\": [512, \
             1, 1], \"est. achieved occupancy %\": 5"
        );
        self.truth.kernels += 1;
        self.truth.kernel_ns += u128::from(duration_ns);
        let start_ns = self.clock;
        self.event(&Item { category: "kernel", name, place: (0, 7), start_ns, duration_ns, args })
    }

    fn arrow(&mut self, phase: &str, id: u64, name: &str) -> io::Result<()> {
        self.separator()?;
        self.truth.events += 1;
        write!(
            self.out,
            "{{\"ph\": \"{phase}\", \"id\": {id}, \"pid\": 0, \"tid\": 7, \"ts\": {}, \"cat\": \
             \"ac2g\", \"name\": \"{name}\", \"bp\": \"e\"}}",
            self.clock / 1000
        )
    }

    fn separator(&mut self) -> io::Result<()> {
        let space = if self.has(Oddity::Compact) { "" } else { "\n  " };
        let comma = if self.first { "" } else { "," };
        self.first = false;
        write!(self.out, "{comma}{space}")
    }

    fn time(&self, ns: u64) -> String {
        if self.has(Oddity::WholeTimes) {
            format!("{}", ns / 1000)
        } else if self.has(Oddity::StringTimes) {
            format!("\"{}.{:03}\"", ns / 1000, ns % 1000)
        } else if self.has(Oddity::ExponentTimes) {
            format!("{ns}e-3")
        } else {
            format!("{}.{:03}", ns / 1000, ns % 1000)
        }
    }

    fn event(&mut self, item: &Item<'_>) -> io::Result<()> {
        self.separator()?;
        self.truth.events += 1;
        let (start, duration) = (self.time(item.start_ns), self.time(item.duration_ns));
        let (process, thread) = item.place;
        let old = self.has(Oddity::Capitalised);
        let category = match item.category {
            "cpu_op" if old => "Operator",
            "kernel" if old => "Kernel",
            "cuda_runtime" if old => "Runtime",
            other => other,
        };
        let args = &item.args;
        if self.has(Oddity::OtherKeys) {
            write!(
                self.out,
                "{{\"args\": {{{args}, \"nested\": [{{\"name\": \"}}, {{\"}}]}}, \"dur\" : \
                 {duration}, \"ts\"\t:{start}, \"sf\": null, \"name\": \""
            )?;
            self.out.write_all(item.name)?;
            return write!(
                self.out,
                "\", \"cat\": \"{category}\", \"tid\": {thread}, \"pid\": {process}, \"ph\": \
                 \"X\" }}"
            );
        }
        let (space, line) = if self.has(Oddity::Compact) { ("", "") } else { (" ", "\n    ") };
        write!(
            self.out,
            "{{{line}\"ph\":{space}\"X\",{space}\"cat\":{space}\"{category}\",{space}\"name\":\
             {space}\""
        )?;
        self.out.write_all(item.name)?;
        write!(
            self.out,
            "\",{space}\"pid\":{space}{process},{space}\"tid\":{space}{thread},{line}\"ts\":{space}\
             {start},{space}\"dur\":{space}{duration},{line}\"args\":{space}{{{line}{args}{line}}}\
             {line}}}"
        )
    }
}
