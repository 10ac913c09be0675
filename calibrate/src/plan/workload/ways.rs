//! The ways to run a model that a partition of its graph knows.

use std::collections::HashMap;

use fusion_cost_model::{GraphNode, Partition, Problem};

use super::{Cut, Layer, Way, layers};

/// The ways to run a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ways {
    /// The ops of each kernel, always fused.
    pub always: Cut,
    /// The same of the best partition.
    pub best: Cut,
    /// The layers of each way. Those of the unfused one are the kernels that are always fused, op by
    /// op.
    pub layers: HashMap<Way, Vec<Layer>>,
}

impl Ways {
    /// The ways that a partition of a graph knows.
    ///
    /// `None` when ops of a kernel are not a problem, which those of the graph's own partition are.
    #[must_use]
    pub fn of(nodes: &[GraphNode], partition: &Partition<'_>) -> Option<Self> {
        let best: Cut = partition.segments.iter().map(|segment| segment.parts.clone()).collect();
        let always = partition.always.segments.clone();
        let of_ways = HashMap::from([
            (Way::Unfused, layers(nodes, &always, false)?),
            (Way::AlwaysFused, layers(nodes, &always, true)?),
            (Way::BestPartition, layers(nodes, &best, true)?),
        ]);
        Some(Self { always, best, layers: of_ways })
    }

    /// The layers of a way.
    #[must_use]
    pub fn of_way(&self, way: Way) -> &[Layer] {
        self.layers.get(&way).map_or(&[], Vec::as_slice)
    }

    /// Whether always fusing is the best partition.
    #[must_use]
    pub fn is_best_to_always_fuse(&self) -> bool {
        self.of_way(Way::AlwaysFused) == self.of_way(Way::BestPartition)
    }

    /// The problems of all layers, each once.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for layer in Way::ALL.into_iter().flat_map(|way| self.of_way(way)) {
            if !problems.contains(&layer.problem) {
                problems.push(layer.problem);
            }
        }
        problems
    }

    /// The pairs to measure: everything against the unfused way, which is also measured against a copy
    /// of itself.
    #[must_use]
    pub fn pairs(&self) -> Vec<[Way; 2]> {
        let mut pairs = vec![[Way::Unfused, Way::BestPartition]];
        if !self.is_best_to_always_fuse() {
            pairs.push([Way::Unfused, Way::AlwaysFused]);
        }
        pairs.push([Way::Unfused, Way::Unfused]);
        pairs
    }

    /// Layers of the unfused way with those of the best partition that hold the same ops: as few of
    /// both at a time as hold the same.
    #[must_use]
    pub fn regions(&self) -> Vec<Region> {
        // Each kernel of either cut joins the regions that its nodes are in.
        let mut region_of: HashMap<usize, usize> = HashMap::new();
        let mut joined: Vec<usize> = Vec::new();
        for parts in self.always.iter().chain(&self.best) {
            let of_parts = parts.iter().filter_map(|part| region_of.get(&part.node));
            let known: Vec<usize> = of_parts.map(|&region| root(&joined, region)).collect();
            let target = known.first().copied().unwrap_or_else(|| {
                joined.push(joined.len());
                joined.len() - 1
            });
            for other in known {
                joined[other] = target;
            }
            for part in parts {
                region_of.entry(part.node).or_insert(target);
            }
        }
        let mut regions: Vec<(usize, Region)> = Vec::new();
        for (is_best, cut) in [(false, &self.always), (true, &self.best)] {
            for (layer, parts) in cut.iter().enumerate() {
                let Some(part) = parts.first() else { continue };
                let Some(&region) = region_of.get(&part.node) else { continue };
                let region = root(&joined, region);
                let at = regions.iter().position(|(known, _)| *known == region);
                let at = at.unwrap_or_else(|| {
                    regions.push((region, Region::default()));
                    regions.len() - 1
                });
                let Region { unfused, best } = &mut regions[at].1;
                if is_best { best.push(layer) } else { unfused.push(layer) }
            }
        }
        regions.into_iter().map(|(_, region)| region).collect()
    }
}

/// The region that a region has been joined to.
fn root(joined: &[usize], mut region: usize) -> usize {
    while joined[region] != region {
        region = joined[region];
    }
    region
}

/// Layers of two ways that hold the same ops.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Region {
    /// Those of the unfused way.
    pub unfused: Vec<usize>,
    /// Those of the best partition.
    pub best: Vec<usize>,
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::NodeOps;

    use super::*;

    fn cut(kernels: &[&[usize]]) -> Cut {
        let parts = |kernel: &&[usize]| {
            kernel.iter().map(|&node| NodeOps { node, ops: 0..1 }).collect::<Vec<_>>()
        };
        kernels.iter().map(parts).collect()
    }

    #[test]
    fn regions_hold_the_same_ops_in_both_ways() {
        // The sum goes on with the one branch always, and with the other one at best.
        let always = cut(&[&[0], &[1], &[2, 3], &[4, 5]]);
        let best = cut(&[&[0], &[2], &[1, 3], &[4], &[5]]);
        let ways = Ways { always, best, layers: HashMap::new() };
        let region = |unfused: &[usize], best: &[usize]| Region {
            unfused: unfused.to_vec(),
            best: best.to_vec(),
        };
        assert_eq!(
            ways.regions(),
            [region(&[0], &[0]), region(&[1, 2], &[1, 2]), region(&[3], &[3, 4])]
        );
    }
}
