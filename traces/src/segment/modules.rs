//! Calls of the modules that are a model's layers, from the recorded Python frames.

use rustc_hash::FxHashMap;

use super::windows::{Window, Windows};
use crate::Trace;
use crate::launched::NONE;

/// How the names of modules end that frameworks use for layers. `LayerNorm` ends otherwise.
const ENDINGS: [&str; 3] = ["Layer", "Block", "Bottleneck"];

/// Modules inside of others count as the layers if they launch at least this share of what those
/// launch: a stage of several blocks is not a layer.
const INNER_SHARE: f64 = 0.9;

/// About this many kernels are sampled to count what a type of module launches.
const SAMPLE: usize = 1 << 14;

/// The calls of the modules that are the layers.
pub(super) struct Modules {
    /// Their type, such as `BertLayer`.
    pub(super) type_name: String,
    /// How many of them there are.
    pub(super) count: usize,
    calls: Windows,
    /// Which of them each call is of.
    called: Vec<u32>,
}

/// The modules of a type.
struct Type<'t> {
    name: &'t str,
    /// By the numbers in their names.
    ids: FxHashMap<&'t str, u32>,
    calls: Vec<Window>,
    called: Vec<u32>,
}

impl Modules {
    /// The type of modules that launches the most, among those that are called like layers.
    pub(super) fn of(trace: &Trace, launches: &[u32]) -> Option<Self> {
        let mut types: Vec<Type<'_>> = Vec::new();
        let mut type_ids: FxHashMap<&str, usize> = FxHashMap::default();
        let mut of_name: Vec<Option<Option<(usize, u32)>>> = vec![None; trace.names.len()];
        for (row, name) in trace.frames.name.iter().enumerate() {
            let Some(known) = of_name.get_mut(name.0 as usize) else { continue };
            let id = *known.get_or_insert_with(|| {
                let (type_name, number) = layer_module(trace.names.text(*name))?;
                let id = *type_ids.entry(type_name).or_insert_with(|| {
                    let ids = FxHashMap::default();
                    types.push(Type {
                        name: type_name,
                        ids,
                        calls: Vec::new(),
                        called: Vec::new(),
                    });
                    types.len() - 1
                });
                let ids = &mut types.get_mut(id)?.ids;
                let next = u32::try_from(ids.len()).unwrap_or(NONE);
                Some((id, *ids.entry(number).or_insert(next)))
            });
            let Some((id, module)) = id else { continue };
            let Some(Type { calls, called, .. }) = types.get_mut(id) else { continue };
            called.push(module);
            let start_ns = trace.frames.start_ns.get(row).copied().unwrap_or_default();
            let duration = trace.frames.duration_ns.get(row).copied().unwrap_or_default();
            let thread = trace.frames.thread.get(row).copied().unwrap_or_default();
            let item = u32::try_from(calls.len()).unwrap_or(NONE);
            let end_ns = start_ns.saturating_add_unsigned(duration);
            calls.push(Window { start_ns, end_ns, thread, item });
        }
        types.retain(|one| one.ids.len() > 1);
        let candidates = types.into_iter().map(|Type { name, ids, calls, called }| {
            let calls = Windows::new(calls, &trace.threads);
            let modules = Self { type_name: name.to_owned(), count: ids.len(), calls, called };
            let sample = launches.iter().step_by(launches.len() / SAMPLE + 1);
            let covered = sample.filter(|launch| modules.call(trace, **launch).is_some());
            (covered.count(), modules)
        });
        let candidates: Vec<(usize, Self)> = candidates.collect();
        let most = candidates.iter().map(|(covered, _)| *covered).max().filter(|most| *most > 0)?;
        let inner = candidates
            .into_iter()
            .filter(|(covered, _)| *covered as f64 >= INNER_SHARE * most as f64);
        inner.max_by_key(|(_, modules)| modules.count).map(|(_, modules)| modules)
    }

    /// The innermost call that a launch lies in.
    pub(super) fn call(&self, trace: &Trace, launch: u32) -> Option<u32> {
        let time = *trace.launches.start_ns.get(launch as usize)?;
        let thread = *trace.launches.thread.get(launch as usize)?;
        let is_here = |window: &Window| window.thread == thread;
        let (_, innermost) = self.calls.around_where(time, is_here)?;
        Some(innermost.item)
    }

    /// The module that the innermost call is of, in which a launch lies.
    pub(super) fn module(&self, trace: &Trace, launch: u32) -> Option<u32> {
        self.called.get(self.call(trace, launch)? as usize).copied()
    }
}

/// `BertLayer` and `3` of `nn.Module: BertLayer_3`, if it is called like a layer.
fn layer_module(frame: &str) -> Option<(&str, &str)> {
    let module = frame.strip_prefix("nn.Module: ")?;
    let (type_name, number) = module.rsplit_once('_')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_layer = ENDINGS.iter().any(|ending| type_name.ends_with(ending));
    (is_number && is_layer).then_some((type_name, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_layers() {
        assert_eq!(layer_module("nn.Module: BertLayer_3"), Some(("BertLayer", "3")));
        assert_eq!(
            layer_module("nn.Module: Qwen2DecoderLayer_12"),
            Some(("Qwen2DecoderLayer", "12"))
        );
        assert_eq!(layer_module("nn.Module: Bottleneck_15"), Some(("Bottleneck", "15")));
        for other in
            ["nn.Module: LayerNorm_3", "nn.Module: BertLayer", "BertLayer_3", "nn.Module: Layer_x"]
        {
            assert_eq!(layer_module(other), None, "{other}");
        }
    }
}
