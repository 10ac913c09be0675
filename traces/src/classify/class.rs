//! The classes, sets of them, and what the classifier answers.

use std::fmt;

/// What a kernel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// GEMMs, matrix by vector included.
    Gemm,
    /// What a library launches after a GEMM: split-K and post-GSU reductions, scaling, dot tails.
    GemmEpilogue,
    /// Convolutions, and what their libraries launch around them: layout changes, scaling. The
    /// short causal convolution of a state-space layer too.
    Conv,
    /// Pooling over windows: the largest or the mean value of each.
    Pool,
    /// Attention, with its reduction and scheduling helpers.
    Attn,
    /// The scans of state-space models and of linear attention, with what prepares and joins their
    /// chunks: where other models have attention, these have a state that is carried along.
    Ssm,
    /// Writing, gathering and indexing the key-value cache.
    KvCache,
    /// Layer, RMS, group and batch normalisation.
    Norm,
    /// Activations: GELU, SiLU, SwiGLU and the like.
    Act,
    /// Softmax outside of attention.
    Softmax,
    /// Rotary position embedding.
    Rope,
    /// The GEMMs of a mixture of experts.
    MoeGemm,
    /// Choosing experts, and sorting tokens by expert.
    MoeRouting,
    /// Bringing the experts' outputs together.
    MoeFinalize,
    /// Quantisation and its inverse.
    Quant,
    /// Embedding, gather, scatter, index.
    EmbedIndex,
    /// Collectives and point-to-point transfers between devices.
    Comm,
    /// Reductions.
    Reduce,
    /// Scans, sorts, searches, selections.
    ScanSort,
    /// Copies, casts, concatenation, transposition.
    Copy,
    /// Fills and memsets.
    Fill,
    /// Arithmetic element by element.
    Elementwise,
    /// No rule knew the kernel.
    Unclassified,
}

impl Class {
    /// Every class, in the order of reports.
    pub const ALL: [Self; 23] = [
        Self::Gemm,
        Self::GemmEpilogue,
        Self::Conv,
        Self::Pool,
        Self::Attn,
        Self::Ssm,
        Self::KvCache,
        Self::Norm,
        Self::Act,
        Self::Softmax,
        Self::Rope,
        Self::MoeGemm,
        Self::MoeRouting,
        Self::MoeFinalize,
        Self::Quant,
        Self::EmbedIndex,
        Self::Comm,
        Self::Reduce,
        Self::ScanSort,
        Self::Copy,
        Self::Fill,
        Self::Elementwise,
        Self::Unclassified,
    ];

    /// The name in reports and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gemm => "GEMM",
            Self::GemmEpilogue => "GEMM_EPILOGUE",
            Self::Conv => "CONV",
            Self::Pool => "POOL",
            Self::Attn => "ATTN",
            Self::Ssm => "SSM",
            Self::KvCache => "KVCACHE",
            Self::Norm => "NORM",
            Self::Act => "ACT",
            Self::Softmax => "SOFTMAX",
            Self::Rope => "ROPE",
            Self::MoeGemm => "MOE_GEMM",
            Self::MoeRouting => "MOE_ROUTING",
            Self::MoeFinalize => "MOE_FINALIZE",
            Self::Quant => "QUANT",
            Self::EmbedIndex => "EMBED_INDEX",
            Self::Comm => "COMM",
            Self::Reduce => "REDUCE",
            Self::ScanSort => "SCAN_SORT",
            Self::Copy => "COPY",
            Self::Fill => "FILL",
            Self::Elementwise => "ELEMENTWISE",
            Self::Unclassified => "UNCLASSIFIED",
        }
    }

    /// The class of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A set of classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassSet(u32);

impl ClassSet {
    /// No class.
    pub const EMPTY: Self = Self(0);

    /// The classes of a list.
    #[must_use]
    pub const fn of(classes: &[Class]) -> Self {
        let mut bits = 0;
        let mut i = 0;
        while i < classes.len() {
            bits |= 1 << classes[i] as u32;
            i += 1;
        }
        Self(bits)
    }

    /// The set with one more class.
    #[must_use]
    pub const fn with(self, class: Class) -> Self {
        Self(self.0 | 1 << class as u32)
    }

    /// The set without a class.
    #[must_use]
    pub const fn without(self, class: Class) -> Self {
        Self(self.0 & !(1 << class as u32))
    }

    /// The classes of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the class is in the set.
    #[must_use]
    pub const fn contains(self, class: Class) -> bool {
        self.0 & 1 << class as u32 != 0
    }

    /// Whether both sets have a class in common.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether there is no class in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many classes there are.
    #[must_use]
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// The classes, in the order of [`Class::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Class> {
        Class::ALL.into_iter().filter(move |class| self.contains(*class))
    }
}

/// Which half of serving an attention kernel is for, if its name says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AttnPhase {
    /// Many query tokens a sequence.
    Prefill,
    /// One query token a sequence, or a few.
    Decode,
    /// The name does not say, or it is not an attention kernel.
    #[default]
    Unknown,
}

impl AttnPhase {
    /// The name in reports and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prefill => "prefill",
            Self::Decode => "decode",
            Self::Unknown => "unknown",
        }
    }
}

/// What the classifier says of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classification {
    /// What the kernel's time is counted as.
    pub main: Class,
    /// What else the name proves that the kernel does. [`Class::Elementwise`] in here is the
    /// addition of a residual or a bias, and of an activation the multiplication by a gate.
    pub also: ClassSet,
    /// Prefill or decode, of an attention kernel.
    pub phase: AttnPhase,
    /// What decided: the name of a rule, `op` for the operator that launched the kernel, `frame`
    /// for a python frame around the launch, `neighbours` for where the kernel always stands, or
    /// `none`.
    pub why: &'static str,
}

/// The order in which the parts of a fused kernel are written: as they follow in a network.
const FLOW: [Class; 23] = [
    Class::Comm,
    Class::EmbedIndex,
    Class::Elementwise,
    Class::Norm,
    Class::Act,
    Class::Rope,
    Class::Softmax,
    Class::KvCache,
    Class::Attn,
    Class::Ssm,
    Class::Conv,
    Class::Pool,
    Class::MoeRouting,
    Class::Gemm,
    Class::MoeGemm,
    Class::GemmEpilogue,
    Class::MoeFinalize,
    Class::Reduce,
    Class::ScanSort,
    Class::Copy,
    Class::Fill,
    Class::Quant,
    Class::Unclassified,
];

impl Classification {
    /// The kernel no rule knew.
    pub const UNCLASSIFIED: Self = Self {
        main: Class::Unclassified,
        also: ClassSet::EMPTY,
        phase: AttnPhase::Unknown,
        why: "none",
    };

    /// Every class of the kernel, the main one too.
    #[must_use]
    pub const fn parts(&self) -> ClassSet {
        self.also.with(self.main)
    }

    /// Whether the name proves more than one class.
    #[must_use]
    pub const fn is_fused(&self) -> bool {
        self.parts().len() > 1
    }

    /// `NORM`, or `ADD+NORM+QUANT` of a fused kernel; `ACT+MUL` of an activation with a gate.
    #[must_use]
    pub fn label(&self) -> String {
        if !self.is_fused() {
            return self.main.name().to_owned();
        }
        let is_gated = self.is_gated();
        let parts = self.parts();
        let mut words = Vec::new();
        for class in FLOW.into_iter().filter(|class| parts.contains(*class)) {
            match class {
                Class::Elementwise if is_gated => {}
                Class::Elementwise if self.main != class => words.push("ADD"),
                _ => words.push(class.name()),
            }
            if class == Class::Act && is_gated {
                words.push("MUL");
            }
        }
        words.join("+")
    }

    /// Whether it is an activation that multiplies by a gate.
    #[must_use]
    pub const fn is_gated(&self) -> bool {
        matches!(self.main, Class::Act) && self.also.contains(Class::Elementwise)
    }
}
