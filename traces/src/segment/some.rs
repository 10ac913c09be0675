//! Some of the layers of a trace: those of a phase.

use super::layers::{Layer, Layers, Pass, Pattern};
use crate::launched::NONE;

impl Layers {
    /// The layers whose first kernel is to be kept, with their passes and patterns, which have new
    /// numbers in the same order. Layers keep their numbers in the model.
    #[must_use]
    pub fn only(&self, keep: impl Fn(usize) -> bool) -> Self {
        let is_kept = |layer: &Layer| {
            self.kernels(layer).first().is_some_and(|kernel| keep(*kernel as usize))
        };
        let mut patterns: Vec<Pattern> = self
            .patterns
            .iter()
            .map(|pattern| Pattern { count: 0, total_ns: 0, first: usize::MAX, ..pattern.clone() })
            .collect();
        let (mut list, mut passes) = (Vec::new(), Vec::<Pass>::new());
        let mut of_kernel = vec![NONE; self.of_kernel.len()];
        for pass in &self.passes {
            let from = list.len();
            let number = u32::try_from(passes.len()).unwrap_or(NONE);
            for layer in self.list.get(pass.layers.clone()).unwrap_or_default() {
                if !is_kept(layer) {
                    continue;
                }
                let id = u32::try_from(list.len()).unwrap_or(NONE);
                for kernel in self.kernels(layer) {
                    if let Some(place) = of_kernel.get_mut(*kernel as usize) {
                        *place = id;
                    }
                }
                if let Some(pattern) = patterns.get_mut(layer.pattern as usize) {
                    pattern.first = pattern.first.min(list.len());
                    pattern.count += 1;
                    pattern.total_ns = pattern.total_ns.saturating_add(layer.total_ns);
                }
                list.push(Layer { pass: number, ..layer.clone() });
            }
            if list.len() > from {
                passes.push(Pass { layers: from..list.len(), ..pass.clone() });
            }
        }
        let mut next = 0;
        let new_ids: Vec<u32> = patterns
            .iter()
            .map(|pattern| {
                let id = next;
                next += u32::from(pattern.count > 0);
                id
            })
            .collect();
        for layer in &mut list {
            layer.pattern = new_ids.get(layer.pattern as usize).copied().unwrap_or(NONE);
        }
        patterns.retain(|pattern| pattern.count > 0);
        Self { list, passes, patterns, of_kernel, ..self.clone() }
    }
}
