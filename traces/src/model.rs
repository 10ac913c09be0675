//! What is kept of a trace: columns, one row for each event of a kind, in the order of the file.
//!
//! An id of zero means that the trace gives none.

use bytemuck::{CheckedBitPattern, NoUninit};
use serde::{Deserialize, Serialize};

use crate::section::{Damage, Part, Sections};
use crate::{Column, Metadata, NameId, Names, Vendor, Warning};

/// A loaded trace.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    /// What the file says about the run and its devices.
    pub metadata: Metadata,
    /// What ran on the devices.
    pub kernels: Kernels,
    /// The calls of the runtime or the driver; most launch something.
    pub launches: Launches,
    /// What the program marked: steps, phases.
    pub annotations: Annotations,
    /// Operators on the host.
    pub ops: Ops,
    /// Calls of Python functions and modules.
    pub frames: Frames,
    /// Every name in the tables above.
    pub names: Names,
    /// The threads of the host, for the columns called `thread`.
    pub threads: Vec<Thread>,
    /// The streams of the devices, for the columns called `lane`.
    pub lanes: Vec<Lane>,
    /// What operators were called with, for the columns called `shape`: each distinct one once, as
    /// [`Shape`](crate::Shape) reads it. The first is empty, for events that do not say.
    pub shapes: Names,
    /// What collectives were called with, for the column called `message`: each distinct one once, as
    /// [`Message`](crate::Message) reads it. The first is empty, for kernels that do not say.
    pub messages: Names,
    /// How many events the file has, with those that are not kept.
    pub events: u64,
    /// How many bytes of JSON were read.
    pub bytes: u64,
    /// What the reader of results must know.
    pub warnings: Vec<Warning>,
}

/// A thread of the host, as the file writes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Thread {
    /// The process; usually a number.
    pub process: String,
    /// The thread; usually a number.
    pub thread: String,
}

/// A stream of a device. Numbers that are missing are -1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lane {
    /// The device.
    pub device: i64,
    /// The stream on it.
    pub stream: i64,
}

/// What kind of work a row of [`Kernels`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, CheckedBitPattern, NoUninit)]
#[repr(u8)]
pub enum DeviceWork {
    /// A kernel.
    Kernel,
    /// A copy that the runtime or the driver does.
    Memcpy,
    /// A fill that the runtime or the driver does.
    Memset,
}

macro_rules! columns {
    ($(#[$doc:meta])* $table:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct $table {
            /// When it began, in nanoseconds since the zero of the trace.
            pub start_ns: Column<i64>,
            /// How long it took, in nanoseconds.
            pub duration_ns: Column<u64>,
            /// What it is called.
            pub name: Column<NameId>,
            $($(#[$field_doc])* pub $field: Column<$type>,)*
        }

        impl $table {
            /// The number of rows.
            #[must_use]
            pub fn len(&self) -> usize {
                self.start_ns.len()
            }

            /// Whether there is none.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.start_ns.is_empty()
            }

            /// The sum of all durations, in nanoseconds.
            #[must_use]
            pub fn total_ns(&self) -> u128 {
                self.duration_ns.iter().map(|&duration| u128::from(duration)).sum()
            }

            /// Leaves rows out.
            pub(crate) fn retain(&mut self, keeps: impl Fn(usize) -> bool) {
                self.start_ns.retain(&keeps);
                self.duration_ns.retain(&keeps);
                self.name.retain(&keeps);
                $(self.$field.retain(&keeps);)*
            }

            pub(crate) fn clear(&mut self) {
                self.start_ns.clear();
                self.duration_ns.clear();
                self.name.clear();
                $(self.$field.clear();)*
            }

            /// Adds the rows of a part, with other ids of names. `parts` is about how many, with this
            /// one, will be added.
            pub(crate) fn append(&mut self, part: &Self, names: &[NameId], parts: usize) {
                self.start_ns.append(&part.start_ns, parts);
                self.duration_ns.append(&part.duration_ns, parts);
                let new_id = |id: &NameId| names.get(id.0 as usize).copied().unwrap_or(*id);
                self.name.reserve(part.len(), parts);
                self.name.extend(part.name.iter().map(new_id));
                $(self.$field.append(&part.$field, parts);)*
            }

            /// The columns as sections of an index.
            pub(crate) fn columns(&self) -> Vec<Part<'_>> {
                vec![
                    Part::of(concat!(stringify!($table), ".start_ns"), &self.start_ns),
                    Part::of(concat!(stringify!($table), ".duration_ns"), &self.duration_ns),
                    Part::of(concat!(stringify!($table), ".name"), &self.name),
                    $(Part::of(
                        concat!(stringify!($table), ".", stringify!($field)),
                        &self.$field,
                    ),)*
                ]
            }

            /// The table that the next sections of an index are.
            pub(crate) fn from_sections(sections: &mut impl Sections) -> Result<Self, Damage> {
                let table = Self {
                    start_ns: sections.column(concat!(stringify!($table), ".start_ns"))?,
                    duration_ns: sections.column(concat!(stringify!($table), ".duration_ns"))?,
                    name: sections.column(concat!(stringify!($table), ".name"))?,
                    $($field: sections
                        .column(concat!(stringify!($table), ".", stringify!($field)))?,)*
                };
                let rows = [table.duration_ns.len(), table.name.len(), $(table.$field.len()),*];
                if rows.iter().all(|&rows| rows == table.len()) {
                    Ok(table)
                } else {
                    Err(Damage::Values { section: stringify!($table).to_owned() })
                }
            }
        }
    };
}

columns! {
    /// What ran on the devices: kernels, copies and fills.
    Kernels {
        /// Where: an index into [`Trace::lanes`].
        lane: u32,
        /// Kernel, copy or fill.
        work: DeviceWork,
        /// Ties it to the launch with the same id. Not unique: all kernels of one graph replay
        /// share one.
        correlation: u64,
        /// Ties it to the operator with the same id.
        external_id: u64,
        /// The node of a graph that it is.
        graph_node: u64,
        /// What it was called with, of a collective: an index into [`Trace::messages`].
        message: u32,
        /// The number of a collective in its process group, the same on all ranks.
        sequence: u32,
    }
}

columns! {
    /// Calls of the runtime or the driver on the host.
    Launches {
        /// Where: an index into [`Trace::threads`].
        thread: u32,
        /// Ties it to what it launched.
        correlation: u64,
        /// Ties it to the operator with the same id.
        external_id: u64,
    }
}

columns! {
    /// What the program marked.
    Annotations {
        /// Where: an index into [`Trace::threads`], also for those of a device.
        thread: u32,
        /// Whether it is the profiler's copy of a mark on the time line of a device.
        on_device: bool,
        /// Ties it to what was launched in it.
        external_id: u64,
        /// What it was called with, of a collective: an index into [`Trace::shapes`].
        shape: u32,
    }
}

columns! {
    /// Operators on the host.
    Ops {
        /// Where: an index into [`Trace::threads`].
        thread: u32,
        /// Ties it to what it launched.
        external_id: u64,
        /// What it was called with: an index into [`Trace::shapes`].
        shape: u32,
        /// Ties it to the node of the backward pass with the same, which computes its gradient; 0
        /// if there is none. Not unique: operators without a gradient have that of the next.
        gradient: u32,
    }
}

columns! {
    /// Calls of Python functions and modules.
    Frames {
        /// Where: an index into [`Trace::threads`].
        thread: u32,
    }
}

impl Trace {
    /// Who made the devices: from the metadata, else from the names of the runtime's calls.
    #[must_use]
    pub fn vendor(&self) -> Vendor {
        let by_metadata = self.metadata.vendor();
        if by_metadata != Vendor::Unknown {
            return by_metadata;
        }
        let calls_of = |prefixes: [&str; 2]| {
            let is_one = |text: &str| prefixes.iter().any(|prefix| text.starts_with(prefix));
            let mut names = self.launches.name.iter();
            names.any(|&id| is_one(self.names.text(id)))
        };
        match (calls_of(["hip", "hsa_"]), calls_of(["cuda", "cuLaunch"])) {
            (true, false) => Vendor::Amd,
            (false, true) => Vendor::Nvidia,
            _ => Vendor::Unknown,
        }
    }

    /// The stream of a row of [`Trace::kernels`].
    #[must_use]
    pub fn lane_of(&self, kernel: usize) -> Option<Lane> {
        let lane = *self.kernels.lane.get(kernel)?;
        self.lanes.get(lane as usize).copied()
    }
}
