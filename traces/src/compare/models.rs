//! Whether the layers of two traces can be compared with each other.

use super::side::Chosen;

/// Why the layers of two traces are not compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mismatch {
    /// A side has none.
    NoLayers {
        /// Which.
        side: usize,
        /// Why.
        reason: String,
    },
    /// They have different numbers of layers.
    Counts([u32; 2]),
    /// They are of different kinds of models.
    Families([&'static str; 2]),
}

impl Mismatch {
    pub(super) fn of(sides: &[Chosen<'_>; 2]) -> Option<Self> {
        for (index, side) in sides.iter().enumerate() {
            let layers = &side.side.segments.layers;
            if side.layers().next().is_none() {
                let reason = layers.none_because.map_or_else(
                    || "those that it has ran on another device".to_owned(),
                    |reason| reason.to_string(),
                );
                return Some(Self::NoLayers { side: index, reason });
            }
        }
        let counts = sides.each_ref().map(|side| side.side.segments.layers.count);
        if counts[0] != counts[1] {
            return Some(Self::Counts(counts));
        }
        let families = sides.each_ref().map(|side| side.side.segments.family.name());
        let are_known = families.iter().all(|family| *family != "unknown");
        (are_known && families[0] != families[1]).then_some(Self::Families(families))
    }

    /// Whether nothing says that the models differ.
    pub(super) fn may_be_one_model(&self) -> bool {
        matches!(self, Self::NoLayers { .. })
    }

    /// The reason in words.
    pub(super) fn reason(&self, labels: &[String; 2]) -> String {
        let [first, second] = labels;
        match self {
            Self::NoLayers { side, reason } => {
                format!("no layers were found in {}, because {reason}", labels[*side])
            }
            Self::Counts([a, b]) => {
                format!("the models differ: {first} has {a} layers and {second} has {b}")
            }
            Self::Families([a, b]) => {
                format!("the models differ: {first} looks {a} and {second} {b}")
            }
        }
    }
}
