//! How to read the page.

use maud::{Markup, html};

pub(super) fn how_to_read(threshold: f64) -> Markup {
    html! {
        section #reading {
            h2 { "How to read this" }
            ul {
                li {
                    "A chain is run unfused, one kernel for each op, and fused, as one kernel. Its \
                     speedup is the unfused time over the fused one, from pairs of samples in fresh \
                     processes; right of 1 fusion is faster. Axes of ratios are logarithmic."
                }
                li {
                    "FASTER and SLOWER: the 95 % interval excludes 1, and the speedup is beyond the \
                     noise. SAME: the whole interval is close to 1. AMBIGUOUS: the measurements do \
                     not decide. INVALID: not to be used."
                }
                li {
                    "The grey band is the noise: how far from 1 a kernel gets that is measured \
                     against itself."
                }
                li {
                    "The ceiling is the speedup that a roofline on the measured peak and bandwidth \
                     allows, if every saved byte and launch were saved time and nothing else \
                     changed. A point beyond its ceiling gains in a way that the model leaves out, \
                     such as what stays in a cache."
                }
                li {
                    "Bytes and flops are modelled from the sizes: each tensor is read or written \
                     once by each kernel."
                }
                li {
                    "Decisions are made at a threshold of " (threshold) ": fuse if the whole interval \
                     is at or above it, keep if it is below, else too close."
                }
            }
        }
    }
}
