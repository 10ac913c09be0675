//! What an index is written of is what is read from it.

use kernel_traces::index::{self, Checksums};
use kernel_traces::synthetic::{self, Oddity, Plan};
use kernel_traces::{Options, Trace, Vendor};
use proptest::prelude::*;

fn plan() -> impl Strategy<Value = Plan> {
    let vendor = prop::sample::select(vec![Vendor::Nvidia, Vendor::Amd]);
    let oddities = prop::sample::subsequence(Oddity::ALL.to_vec(), 0..4);
    (vendor, 0_u64..4, 0_u64..4, 0_u64..3, oddities, any::<u64>()).prop_map(
        |(vendor, layers, steps, frames, oddities, seed)| Plan {
            vendor,
            layers,
            steps,
            frames,
            oddities,
            seed,
            ..Plan::default()
        },
    )
}

proptest! {
    #[test]
    fn a_trace_comes_back(plan in plan(), cut in 0.5..1.0, is_cut in any::<bool>()) {
        let (mut text, _) = synthetic::text(&plan).unwrap();
        if is_cut {
            text.truncate((text.len() as f64 * cut) as usize);
        }
        if let Ok(trace) = Trace::from_json(&text, &Options::default()) {
            let bytes = index::to_bytes(&trace).unwrap();
            prop_assert_eq!(index::read_bytes(&bytes, Checksums::Verified).unwrap(), trace);
        }
    }
}
