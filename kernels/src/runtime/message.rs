//! The requests.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::answer::{Done, Introduction, Ran, Ready};
use super::describe::Description;

/// The version of the protocol.
pub const PROTOCOL: u32 = 1;

/// Something that a runtime is asked: one line of JSON, with its name under `do` and a number, which
/// the answer repeats.
pub(super) trait Request: Serialize {
    /// Its name.
    const NAME: &'static str;
    /// How long the answer may take.
    const LIMIT: Duration;
    /// What comes of it, in addition to the number.
    type Answer: DeserializeOwned;
}

/// Who are you?
#[derive(Serialize)]
pub(super) struct Hello<'a> {
    pub(super) protocol: u32,
    pub(super) threads: usize,
    pub(super) device: &'static str,
    /// A folder that outlives the process, for what it compiles.
    pub(super) cache: Option<&'a Path>,
}

/// Would you run this?
#[derive(Serialize)]
pub(super) struct Supports<'a> {
    pub(super) problem: &'a Description,
}

/// Make both variants ready. All that is compiled is compiled here.
#[derive(Serialize)]
pub(super) struct Prepare<'a> {
    /// What it is called from now on.
    pub(super) id: u32,
    pub(super) problem: &'a Description,
    /// The numbers of each input, as the dtype has them, little-endian. Open them now: the names are
    /// gone when the answer is there.
    pub(super) files: Vec<&'a Path>,
    /// Where an output goes, when it is asked for.
    pub(super) output: &'a Path,
}

/// Move the tensors to another place, drawn by this seed.
#[derive(Serialize)]
pub(super) struct Layout {
    pub(super) id: u32,
    pub(super) seed: u32,
}

/// Fill the output with NaN.
#[derive(Serialize)]
pub(super) struct Poison {
    pub(super) id: u32,
}

/// Run a variant this many times. No runs at all are asked for to see what a message takes.
#[derive(Serialize)]
pub(super) struct Run {
    pub(super) id: u32,
    pub(super) variant: &'static str,
    pub(super) iterations: u32,
}

/// Write the output of the last run into its file.
#[derive(Serialize)]
pub(super) struct Output {
    pub(super) id: u32,
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

impl Request for Hello<'_> {
    const NAME: &'static str = "hello";
    // A framework of gigabytes is read from a cold disk.
    const LIMIT: Duration = seconds(120);
    type Answer = Introduction;
}

impl Request for Supports<'_> {
    const NAME: &'static str = "supports";
    const LIMIT: Duration = seconds(30);
    type Answer = Done;
}

impl Request for Prepare<'_> {
    const NAME: &'static str = "prepare";
    // Compilers search for minutes.
    const LIMIT: Duration = seconds(600);
    type Answer = Ready;
}

impl Request for Layout {
    const NAME: &'static str = "layout";
    const LIMIT: Duration = seconds(60);
    type Answer = Done;
}

impl Request for Poison {
    const NAME: &'static str = "poison";
    const LIMIT: Duration = seconds(60);
    type Answer = Done;
}

impl Request for Run {
    const NAME: &'static str = "run";
    const LIMIT: Duration = seconds(300);
    type Answer = Ran;
}

impl Request for Output {
    const NAME: &'static str = "output";
    const LIMIT: Duration = seconds(60);
    type Answer = Done;
}

/// A request as it goes over the pipe.
#[derive(Serialize)]
pub(super) struct Numbered<'a, R> {
    pub(super) n: u64,
    #[serde(rename = "do")]
    pub(super) name: &'static str,
    #[serde(flatten)]
    pub(super) request: &'a R,
}
