//! What the kernels of a layer are for, by where they stand around attention and activation.
//!
//! A layer that begins at its attention goes on with the output projection, a norm, the
//! feed-forward GEMMs with the activation between them, and ends with the norm and the
//! projections of the next layer's attention. GEMMs that a norm separates are of different
//! parts; within the feed-forward part the activation separates them. Every other kernel has the
//! role of the part that it stands in.

use std::ops::Range;

use serde::Serialize;

use super::work::Work;
use crate::classify::Class;

/// What a kernel is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The norm before attention.
    AttentionNorm,
    /// The projections that attention reads, with position embedding.
    Qkv,
    /// Attention, with the cache that it reads.
    Attention,
    /// A scan, with the convolution and the projection that it reads.
    StateSpace,
    /// The output projection of attention, or of a scan, and adding it up.
    Out,
    /// The norm before the feed-forward part.
    FeedForwardNorm,
    /// Choosing experts.
    Router,
    /// The first GEMMs of the feed-forward part.
    GateUp,
    /// The activation.
    Activation,
    /// The last GEMM of the feed-forward part, and adding it up.
    Down,
    /// The GEMMs of experts, and bringing them together.
    Experts,
    /// Something of a layer whose parts cannot be distinguished.
    Layer,
    /// A part of a layer's backward pass.
    Backward,
    /// Outside of all layers.
    Outside,
}

impl Role {
    /// All of them, in the order of a layer.
    pub const ALL: [Self; 14] = [
        Self::AttentionNorm,
        Self::Qkv,
        Self::Attention,
        Self::StateSpace,
        Self::Out,
        Self::FeedForwardNorm,
        Self::Router,
        Self::GateUp,
        Self::Activation,
        Self::Down,
        Self::Experts,
        Self::Layer,
        Self::Backward,
        Self::Outside,
    ];

    /// The name in reports and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AttentionNorm => "attention_norm",
            Self::Qkv => "qkv",
            Self::Attention => "attention",
            Self::StateSpace => "state_space",
            Self::Out => "out",
            Self::FeedForwardNorm => "feed_forward_norm",
            Self::Router => "router",
            Self::GateUp => "gate_up",
            Self::Activation => "activation",
            Self::Down => "down",
            Self::Experts => "experts",
            Self::Layer => "layer",
            Self::Backward => "backward",
            Self::Outside => "outside",
        }
    }
}

impl Role {
    /// Where that is, in a sentence.
    pub(super) fn place(self) -> String {
        match self {
            Self::Outside => "outside of layers".to_owned(),
            role => format!("in {}", role.name()),
        }
    }
}

/// The role of each kernel of a layer.
pub(super) fn roles(layer: &[Work], is_backward: bool) -> Vec<Role> {
    if is_backward {
        return vec![Role::Backward; layer.len()];
    }
    let Some(core) = Core::of(layer) else { return vec![Role::Layer; layer.len()] };
    // From the core on, and around: what a layer of a module has before its core is what a layer
    // that begins at its core has at its end.
    let around: Vec<Work> =
        layer.iter().cycle().skip(core.first).take(layer.len()).copied().collect();
    let mut roles = core.roles(&around);
    roles.rotate_right(core.first);
    roles
}

/// What stands in the middle of a layer: attention, the softmax of an attention of separate
/// kernels, or a scan.
struct Core {
    first: usize,
    role: Role,
    is_softmax: bool,
}

impl Core {
    fn of(layer: &[Work]) -> Option<Self> {
        let is_core = |work: &Work| work.is_core();
        let first_core = layer.iter().position(is_core);
        let is_softmax = first_core.is_none();
        let core =
            first_core.or_else(|| layer.iter().position(|work| work.main == Class::Softmax))?;
        // The write of the cache is before attention, and what prepares a scan before the scan.
        let before = layer.get(..core).unwrap_or_default();
        let is_before = |work: &Work| match work.main {
            Class::KvCache => true,
            Class::Conv => layer.get(core).is_some_and(|core| core.main == Class::Ssm),
            _ => false,
        };
        let first = before.iter().position(is_before).unwrap_or(core);
        let is_scan = layer.get(core).is_some_and(|work| work.main == Class::Ssm);
        let role = if is_scan { Role::StateSpace } else { Role::Attention };
        Some(Self { first, role, is_softmax })
    }

    /// The roles of a layer that begins at this core.
    fn roles(&self, layer: &[Work]) -> Vec<Role> {
        let mut roles = vec![self.role; layer.len()];
        let last_core = layer
            .iter()
            .rposition(|work| work.is_core() || self.is_softmax && work.main == Class::Softmax)
            .unwrap_or(0);
        let Some(out) = self.out(layer, last_core) else { return roles };
        let parts = Parts::of(layer, out);
        for (at, role) in roles.iter_mut().enumerate().skip(out) {
            *role = parts.role(layer, at);
        }
        // What prepares a GEMM is for that GEMM, also if something else prepares it too.
        let mut is_for_next = false;
        for at in (0..layer.len().saturating_sub(1)).rev() {
            let prepares = matches!(layer[at].main, Class::Fill | Class::Quant);
            let next = layer[at + 1];
            is_for_next =
                prepares && (is_for_next || next.is_gemm() || next.main == Class::MoeGemm);
            if is_for_next {
                roles[at] = roles[at + 1];
            }
        }
        // The GEMM of queries and keys is the last before the softmax.
        if self.is_softmax
            && let Some(scores) = layer.iter().rposition(|work| work.is_gemm())
            && scores > out
            && parts.next.contains(&scores)
        {
            roles[scores..].fill(Role::Attention);
        }
        roles
    }

    /// Where the output projection is: the first GEMM after the core. After a softmax the first
    /// one is still of attention.
    fn out(&self, layer: &[Work], core: usize) -> Option<usize> {
        let mut products =
            (core + 1..layer.len()).filter(|at| layer.get(*at).is_some_and(|w| w.is_gemm()));
        if self.is_softmax {
            products.next();
        }
        products.next()
    }
}

/// The parts of a layer after its core, as places.
struct Parts {
    /// The output projection.
    out: usize,
    /// From the first GEMM of the feed-forward part to its last one.
    feed_forward: Range<usize>,
    /// The activation, the last one if there are several.
    activation: Option<usize>,
    /// The GEMM behind the activation.
    down: Option<usize>,
    has_experts: bool,
    /// The GEMMs of the next layer's core, to the end.
    next: Range<usize>,
    /// Whether these may as well be the feed-forward part of the last layer.
    is_next_unclear: bool,
}

impl Parts {
    fn of(layer: &[Work], out: usize) -> Self {
        let end = layer.len();
        let is_expert = |work: &Work| {
            matches!(work.main, Class::MoeGemm | Class::MoeRouting | Class::MoeFinalize)
        };
        let is_feeding = |work: &Work| {
            is_expert(work) || work.main == Class::Act || work.parts().contains(Class::Act)
        };
        let groups = groups(layer, out + 1);
        let find = |group: &Range<usize>| {
            layer.get(group.clone()).is_some_and(|works| works.iter().any(is_feeding))
        };
        let feed = groups.iter().position(find).or((groups.len() > 1).then_some(0));
        let Some(feed) = feed else {
            // Without an activation one group may be either.
            let next = groups.first().cloned().unwrap_or(end..end);
            let next = if groups.len() == 1 { next } else { end..end };
            return Self {
                out,
                feed_forward: end..end,
                activation: None,
                down: None,
                has_experts: false,
                next: next.start..end,
                is_next_unclear: true,
            };
        };
        let mut feed_forward = groups.get(feed).cloned().unwrap_or(end..end);
        let mut next = groups.get(feed + 1).map_or(end..end, |next| next.start..end);
        let works = layer.get(feed_forward.clone()).unwrap_or_default();
        let has_experts = works.iter().any(is_expert);
        let from = feed_forward.start;
        let activation =
            works.iter().rposition(|work| work.parts().contains(Class::Act)).map(|at| at + from);
        let products = |range: Range<usize>| {
            let is_gemm = |at: &usize| layer.get(*at).is_some_and(|work| work.is_gemm());
            range.filter(is_gemm).collect::<Vec<usize>>()
        };
        let down = if has_experts {
            None
        } else {
            let behind = activation.map_or(from, |at| at + 1);
            let behind = products(behind..feed_forward.end);
            // Only the activation separates the feed-forward part from the projections of the next
            // layer if no norm stands between them.
            if next.is_empty() && behind.len() > 2 {
                next = behind.get(1).map_or(end..end, |second| *second..end);
                feed_forward.end = next.start;
                behind.first().copied()
            } else {
                behind.last().copied().filter(|down| *down > from || activation.is_none())
            }
        };
        let is_next_unclear = false;
        Self { out, feed_forward, activation, down, has_experts, next, is_next_unclear }
    }

    fn role(&self, layer: &[Work], at: usize) -> Role {
        let is_norm_before = |limit: usize| {
            let between = layer.get(self.out + 1..limit).unwrap_or_default();
            between.iter().any(|work| work.is_norm())
        };
        if at >= self.next.start && !self.next.is_empty() {
            return if self.is_next_unclear { Role::Layer } else { Role::Qkv };
        }
        if at < self.feed_forward.start {
            return if is_norm_before(at + 1) { Role::FeedForwardNorm } else { Role::Out };
        }
        let after_experts = || {
            let rest = layer.get(self.feed_forward.start..=at).unwrap_or_default();
            let last = rest.iter().rposition(|work| {
                matches!(work.main, Class::MoeGemm | Class::MoeRouting | Class::MoeFinalize)
            });
            last.map_or(0, |last| self.feed_forward.start + last)
        };
        if self.has_experts {
            let work = layer.get(at).copied();
            if work.is_some_and(|work| work.is_gemm() || work.main == Class::MoeRouting) {
                return Role::Router;
            }
            let norm_since = layer.get(after_experts()..=at).unwrap_or_default();
            let is_over = norm_since.iter().any(|work| work.parts().contains(Class::Norm));
            return if is_over { Role::AttentionNorm } else { Role::Experts };
        }
        match self.down {
            Some(down) if at >= down => {
                let since = layer.get(down + 1..=at).unwrap_or_default();
                let is_over = since.iter().any(|work| work.is_norm());
                if is_over { Role::AttentionNorm } else { Role::Down }
            }
            _ if self.activation == Some(at)
                && layer.get(at).is_some_and(|work| work.main == Class::Act) =>
            {
                Role::Activation
            }
            _ => Role::GateUp,
        }
    }
}

/// The places of GEMMs, or of experts, that no norm separates: from the first to behind the
/// last of each group.
fn groups(layer: &[Work], from: usize) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut is_open = false;
    for (at, work) in layer.iter().enumerate().skip(from) {
        let belongs = matches!(
            work.main,
            Class::Gemm | Class::MoeGemm | Class::MoeRouting | Class::MoeFinalize
        );
        if work.is_norm() && !belongs {
            is_open = false;
        } else if belongs {
            match groups.last_mut().filter(|_| is_open) {
                Some(group) => group.end = at + 1,
                None => groups.push(at..at + 1),
            }
            is_open = true;
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::ClassSet;

    /// The roles of a layer that is written as its classes.
    fn of(classes: &str) -> Vec<&'static str> {
        let works: Vec<Work> = classes
            .split_whitespace()
            .map(|label| {
                let mut parts = label.split('+').rev();
                let main = Class::from_name(parts.next().unwrap()).unwrap();
                let also = parts.fold(ClassSet::EMPTY, |set, part| {
                    let part = if part == "ADD" { "ELEMENTWISE" } else { part };
                    set.with(Class::from_name(part).unwrap())
                });
                Work { main, also }
            })
            .collect();
        roles(&works, false).into_iter().map(Role::name).collect()
    }

    #[test]
    fn a_layer_that_is_replayed() {
        let classes =
            "KVCACHE ATTN ATTN GEMM NORM GEMM ACT GEMM NORM GEMM COPY NORM COPY NORM ROPE";
        let expected = [
            "attention",
            "attention",
            "attention",
            "out",
            "feed_forward_norm",
            "gate_up",
            "activation",
            "down",
            "attention_norm",
            "qkv",
            "qkv",
            "qkv",
            "qkv",
            "qkv",
            "qkv",
        ];
        assert_eq!(of(classes), expected);
    }

    #[test]
    fn experts_and_their_router() {
        let classes = "KVCACHE ATTN GEMM NORM GEMM MOE_ROUTING MOE_GEMM MOE_GEMM MOE_FINALIZE \
                       NORM GEMM ROPE";
        let expected = [
            "attention",
            "attention",
            "out",
            "feed_forward_norm",
            "router",
            "router",
            "experts",
            "experts",
            "experts",
            "attention_norm",
            "qkv",
            "qkv",
        ];
        assert_eq!(of(classes), expected);
    }

    #[test]
    fn a_layer_that_runs_op_by_op() {
        let classes = "ATTN COPY FILL GEMM ELEMENTWISE COPY REDUCE ELEMENTWISE FILL GEMM ACT GEMM \
                       ELEMENTWISE GEMM ELEMENTWISE REDUCE ELEMENTWISE GEMM GEMM GEMM COPY";
        let expected = [
            "attention",
            "attention",
            "out",
            "out",
            "out",
            "out",
            "feed_forward_norm",
            "feed_forward_norm",
            "gate_up",
            "gate_up",
            "activation",
            "gate_up",
            "gate_up",
            "down",
            "down",
            "attention_norm",
            "attention_norm",
            "qkv",
            "qkv",
            "qkv",
            "qkv",
        ];
        assert_eq!(of(classes), expected);
    }

    #[test]
    fn what_prepares_a_product_is_for_it() {
        let roles = of("KVCACHE ATTN FILL QUANT GEMM NORM FILL GEMM ACT GEMM NORM GEMM ROPE");
        assert_eq!(roles[..5], ["attention", "attention", "out", "out", "out"]);
        assert_eq!(roles[6..8], ["gate_up", "gate_up"]);
        // What is followed by something else is not.
        assert_eq!(of("KVCACHE FILL ATTN GEMM NORM GEMM ACT GEMM")[1], "attention");
    }
}
