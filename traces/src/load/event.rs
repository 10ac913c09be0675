//! An event as both parsers give it.

use std::borrow::Cow;

/// What an event is about, as far as it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Category {
    Kernel,
    Memcpy,
    Memset,
    Launch,
    /// A call of the runtime of Intel's GPUs.
    XpuLaunch,
    /// A call of the runtime of MTIA devices.
    MtiaLaunch,
    Annotation,
    DeviceAnnotation,
    Op,
    Frame,
    /// Not kept.
    Other,
}

/// Names of categories; profilers of 2022 and before capitalise them and have shorter ones.
const CATEGORIES: [(&[u8], Category); 21] = [
    (b"cpu_op", Category::Op),
    (b"kernel", Category::Kernel),
    (b"cuda_runtime", Category::Launch),
    (b"python_function", Category::Frame),
    (b"cuda_driver", Category::Launch),
    (b"gpu_memcpy", Category::Memcpy),
    (b"gpu_memset", Category::Memset),
    (b"user_annotation", Category::Annotation),
    (b"gpu_user_annotation", Category::DeviceAnnotation),
    (b"hip_runtime", Category::Launch),
    (b"hip_driver", Category::Launch),
    (b"xpu_runtime", Category::XpuLaunch),
    (b"xpu_driver", Category::XpuLaunch),
    (b"mtia_runtime", Category::MtiaLaunch),
    (b"mtia_ccp_events", Category::MtiaLaunch),
    (b"runtime", Category::Launch),
    (b"driver", Category::Launch),
    (b"memcpy", Category::Memcpy),
    (b"memset", Category::Memset),
    (b"operator", Category::Op),
    (b"cuda_kernel", Category::Kernel),
];

impl Category {
    /// Whether it is of what ran on a device, and not of calls or marks.
    pub(crate) fn is_on_device(self) -> bool {
        matches!(self, Self::Kernel | Self::Memcpy | Self::Memset)
    }

    /// How many there are.
    pub(crate) const COUNT: usize = Self::Other as usize + 1;

    pub(crate) fn of(text: &[u8]) -> Self {
        let exact = CATEGORIES.iter().find(|(name, _)| *name == text);
        let found =
            exact.or_else(|| CATEGORIES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)));
        found.map_or(Self::Other, |&(_, category)| category)
    }
}

/// A number of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Field<T> {
    #[default]
    Missing,
    /// There, but no number that fits.
    Bad,
    Is(T),
}

impl<T> Field<T> {
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }
}

/// An event that is kept. Of a key that comes twice, the first counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event<'b> {
    pub(crate) category: Category,
    pub(crate) name: Cow<'b, [u8]>,
    pub(crate) process: Cow<'b, [u8]>,
    pub(crate) thread: Cow<'b, [u8]>,
    pub(crate) start_ns: Field<i64>,
    pub(crate) duration_ns: Field<i64>,
    pub(crate) args: Args,
    pub(crate) inputs: Inputs<'b>,
    /// All arguments of a kernel that names its collective, as JSON; else empty.
    pub(crate) collective: Cow<'b, [u8]>,
}

impl Event<'_> {
    /// What an event is before it is read.
    pub(crate) const NONE: Self = Self {
        category: Category::Other,
        name: Cow::Borrowed(b""),
        process: Cow::Borrowed(b""),
        thread: Cow::Borrowed(b""),
        start_ns: Field::Missing,
        duration_ns: Field::Missing,
        args: Args {
            device: Field::Missing,
            stream: Field::Missing,
            correlation: Field::Missing,
            external_id: Field::Missing,
            gradient: Field::Missing,
            graph_node: Field::Missing,
        },
        inputs: Inputs::NONE,
        collective: Cow::Borrowed(b""),
    };

    /// The same with texts of its own.
    pub(crate) fn into_owned(self) -> Event<'static> {
        let own = |text: Cow<'_, [u8]>| Cow::Owned(text.into_owned());
        Event {
            category: self.category,
            name: own(self.name),
            process: own(self.process),
            thread: own(self.thread),
            start_ns: self.start_ns,
            duration_ns: self.duration_ns,
            args: self.args,
            inputs: Inputs {
                dims: own(self.inputs.dims),
                types: own(self.inputs.types),
                values: own(self.inputs.values),
            },
            collective: own(self.collective),
        }
    }
}

/// What an operator was called with, as JSON; empty where the event does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inputs<'b> {
    /// The sizes of its tensors.
    pub(crate) dims: Cow<'b, [u8]>,
    /// The types of its inputs.
    pub(crate) types: Cow<'b, [u8]>,
    /// The values of those that are not tensors.
    pub(crate) values: Cow<'b, [u8]>,
}

impl Inputs<'_> {
    pub(crate) const NONE: Self =
        Self { dims: Cow::Borrowed(b""), types: Cow::Borrowed(b""), values: Cow::Borrowed(b"") };
}

/// What is kept of the arguments of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Args {
    pub(crate) device: Field<i64>,
    pub(crate) stream: Field<i64>,
    pub(crate) correlation: Field<u64>,
    pub(crate) external_id: Field<u64>,
    pub(crate) gradient: Field<u64>,
    pub(crate) graph_node: Field<u64>,
}

/// Which of the arguments a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arg {
    Device,
    Stream,
    Correlation,
    ExternalId,
    Gradient,
    GraphNode,
    Collective,
    Dims,
    Types,
    Values,
}

impl Arg {
    #[inline]
    pub(crate) fn of(key: &[u8]) -> Option<Self> {
        match key {
            b"device" => Some(Self::Device),
            b"stream" => Some(Self::Stream),
            b"correlation" => Some(Self::Correlation),
            // The second is that of profilers of 2022 and before.
            b"External id" | b"external id" => Some(Self::ExternalId),
            b"Sequence number" => Some(Self::Gradient),
            b"graph node id" => Some(Self::GraphNode),
            b"Collective name" => Some(Self::Collective),
            b"Input Dims" => Some(Self::Dims),
            // The second is that of profilers of 2022 and before.
            b"Input type" | b"Input Type" => Some(Self::Types),
            b"Concrete Inputs" => Some(Self::Values),
            _ => None,
        }
    }
}
