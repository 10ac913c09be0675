//! The layers of both sides, kernel beside kernel.

use kernel_traces::compare::{
    LayerComparison, LayerKind, LayerNumber, Ratio, Role, Slot, SlotKernel, SlotStatus,
};
use kernel_traces::segment::Phase;

use super::{STEPS, US, part};

pub(crate) fn kernel(class: &str, name: &str, mean_us: f64) -> SlotKernel {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers")]
    let [min_ns, max_ns] = [0.9, 1.2].map(|times| (mean_us * US * times) as u64);
    SlotKernel {
        class: class.to_owned(),
        kernel: name.to_owned(),
        names: 1,
        count: 230,
        mean_ns: mean_us * US,
        deviation_ns: Some(0.04 * mean_us * US),
        min_ns,
        max_ns,
    }
}

/// A slot of all 23 layers of a kind.
pub(crate) fn slot(role: Role, first: Option<SlotKernel>, second: Option<SlotKernel>) -> Slot {
    let mean = |kernel: &Option<SlotKernel>| kernel.as_ref().map_or(0.0, |one| one.mean_ns / US);
    let kernels = |kernel: &Option<SlotKernel>| u64::from(kernel.is_some()) * 23;
    let ratio = first.is_some() && second.is_some();
    let value = mean(&first) / mean(&second);
    Slot {
        slot: 0,
        role,
        status: match (&first, &second) {
            (Some(_), None) => SlotStatus::FirstOnly,
            (None, _) => SlotStatus::SecondOnly,
            _ => SlotStatus::Aligned,
        },
        part: part(
            [kernels(&first), kernels(&second)],
            [23.0 * mean(&first), 23.0 * mean(&second)],
        ),
        ratio: ratio.then_some(Ratio { value, interval: Some((0.98 * value, 1.02 * value)) }),
        first,
        second,
        fusion: None,
        implementation: None,
    }
}

fn slots() -> Vec<Slot> {
    let both = |role, class: &str, names: [&str; 2], us: [f64; 2]| {
        slot(role, Some(kernel(class, names[0], us[0])), Some(kernel(class, names[1], us[1])))
    };
    let mut slots = vec![
        both(
            Role::Attention,
            "KVCACHE",
            ["reshape_and_cache_kernel", "reshape_and_cache_flash_kernel"],
            [12.0, 9.0],
        ),
        both(
            Role::Attention,
            "ATTN",
            ["kernel_unified_attention_2d", "flash_fwd_splitkv_kernel"],
            [180.0, 120.0],
        ),
        slot(Role::Attention, None, Some(kernel("ATTN", "flash_fwd_splitkv_combine_kernel", 20.0))),
        both(
            Role::Out,
            "GEMM",
            ["Cijk_Ailk_Bljk_BBS_BH_MT128x128x64", "nvjet_tst_128x256_64x4_h_bz_coopA_TNT"],
            [100.0, 90.0],
        ),
        slot(Role::FeedForwardNorm, Some(kernel("ELEMENTWISE", "vectorized_add", 30.0)), None),
        slot(
            Role::FeedForwardNorm,
            Some(kernel("NORM", "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*)", 40.0)),
            Some(kernel(
                "ADD+NORM",
                "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, c10::BFloat16 const*, float, int, int)",
                25.0,
            )),
        ),
        both(Role::GateUp, "GEMM", ["Cijk_Alik_Bljk_up", "nvjet_tst_up"], [310.0, 200.0]),
        both(Role::Activation, "ACT", ["act_and_mul_kernel", "act_and_mul_kernel"], [22.0, 20.0]),
    ];
    for (at, slot) in slots.iter_mut().enumerate() {
        slot.slot = at;
    }
    slots[2].implementation = Some(0);
    slots[4].fusion = Some(0);
    slots[5].fusion = Some(0);
    slots[7].status = SlotStatus::Moved;
    slots
}

pub(super) fn layers() -> LayerComparison {
    let slots = slots();
    let sum = |of: fn(&Slot) -> &Option<SlotKernel>| {
        slots.iter().filter_map(|slot| of(slot).as_ref()).map(|one| one.mean_ns).sum::<f64>()
    };
    let (first_mean_ns, second_mean_ns) = (sum(|slot| &slot.first), sum(|slot| &slot.second));
    let kind = |kind: usize, numbers: &str, layers: u64| {
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let times = layers as f64 / US;
        LayerKind {
            kind,
            phase: (kind == 0).then_some(Phase::Decode),
            is_backward: false,
            is_outside: numbers.is_empty(),
            numbers: numbers.to_owned(),
            first_layers: layers * STEPS[0],
            second_layers: layers * STEPS[1],
            first_mean_ns,
            second_mean_ns,
            part: part([8 * layers, 8 * layers], [first_mean_ns * times, second_mean_ns * times]),
            slots: slots.clone(),
        }
    };
    let number = |layer, second_layers| LayerNumber {
        layer,
        is_backward: false,
        first_layers: STEPS[0],
        second_layers,
        part: part([8, u64::from(second_layers > 0) * 8], [694.0, 484.0]),
    };
    LayerComparison {
        aligned: 24,
        none_because: None,
        kinds: vec![kind(0, "0-22", 23), kind(1, "", 1)],
        numbers: vec![number(0, STEPS[1]), number(1, STEPS[1]), number(2, 0)],
    }
}
