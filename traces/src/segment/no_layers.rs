//! Why a trace has no layers.

use std::fmt;

use serde::Serialize;

use super::markers::Marker;

/// Why a trace has no layers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum NoLayers {
    /// Nothing ran on a device.
    NoKernels,
    /// There is no attention, no write of a cache, no scan, no module called like a layer, and no
    /// sequence that repeats.
    NoMarker,
    /// The whole recording is one sequence of kernels over and over, which is a step and no layer.
    OnlySteps {
        /// How often it runs.
        steps: usize,
        /// How many kernels it has.
        kernels: usize,
    },
    /// There is one marker, and it takes two layers to see that they repeat.
    OneMarker {
        /// What the marker is.
        marker: Marker,
    },
    /// The kernels between the markers are different every time.
    NoRepetition {
        /// What the markers are.
        marker: Marker,
        /// How many there are.
        markers: usize,
        /// The share of them that are followed by a sequence that occurs at least twice.
        repeated_share: f64,
    },
}

impl fmt::Display for NoLayers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKernels => f.write_str("nothing ran on a device"),
            Self::NoMarker => f.write_str(
                "there is no attention, no write of a key-value cache, no state-space scan, no \
                 recorded module whose name ends in Layer or Block, and no sequence of kernels \
                 that repeats over at least half of a step",
            ),
            Self::OnlySteps { steps, kernels } => write!(
                f,
                "the same {kernels} kernels run {steps} times and nothing inside of them repeats: \
                 those are steps of a model without layers"
            ),
            Self::OneMarker { marker } => {
                write!(
                    f,
                    "{marker} is there only once, and one layer alone does not stand out from \
                           what is around it"
                )
            }
            Self::NoRepetition { marker, markers, repeated_share } => write!(
                f,
                "{marker} is there {markers} times, but only {:.0} % of the stretches between \
                 look like another one",
                100.0 * repeated_share
            ),
        }
    }
}
