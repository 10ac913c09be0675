//! A trace with some of its kernels.

use crate::{Classes, Column, Kernels, Trace};

impl Trace {
    /// The kernels that are to be kept, with their classes, as a trace that has nothing else:
    /// sums over a phase, a step or a layer are sums over such a trace.
    #[must_use]
    pub fn only(&self, classes: &Classes, keep: impl Fn(usize) -> bool) -> (Self, Classes) {
        let rows: Vec<usize> = (0..self.kernels.len()).filter(|row| keep(*row)).collect();
        let trace = Self {
            metadata: self.metadata.clone(),
            kernels: self.kernels.only(&rows),
            names: self.names.clone(),
            lanes: self.lanes.clone(),
            messages: self.messages.clone(),
            ..Self::default()
        };
        (trace, classes.select(&rows))
    }
}

impl Kernels {
    fn only(&self, rows: &[usize]) -> Self {
        fn some<T: Copy>(column: &[T], rows: &[usize]) -> Column<T> {
            rows.iter().filter_map(|row| column.get(*row).copied()).collect()
        }
        let Self {
            start_ns,
            duration_ns,
            name,
            lane,
            work,
            correlation,
            external_id,
            graph_node,
            message,
            sequence,
        } = self;
        Self {
            start_ns: some(start_ns, rows),
            duration_ns: some(duration_ns, rows),
            name: some(name, rows),
            lane: some(lane, rows),
            work: some(work, rows),
            correlation: some(correlation, rows),
            external_id: some(external_id, rows),
            graph_node: some(graph_node, rows),
            message: some(message, rows),
            sequence: some(sequence, rows),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::synthetic::{self, Plan};
    use crate::{Classes, Options, Summary, Taxonomy, Trace};

    #[test]
    fn parts_add_up_to_the_whole() {
        let text = synthetic::text(&Plan { layers: 3, ..Plan::default() }).unwrap().0;
        let trace = Trace::from_json(&text, &Options::default()).unwrap();
        let classes = Classes::of(&trace);
        let sum = |keep: fn(usize) -> bool| {
            let (part, classes) = trace.only(&classes, keep);
            let summary = Summary::with(&part, &classes, Taxonomy::Classes);
            (summary.kernels, summary.total_ns)
        };
        let (odd, even, all) = (sum(|row| row % 2 == 1), sum(|row| row % 2 == 0), sum(|_| true));
        assert_eq!((odd.0 + even.0, odd.1 + even.1), all);
        assert_eq!(all.0, trace.kernels.len());
        assert_eq!(sum(|_| false), (0, 0));
        let (part, of_part) = trace.only(&classes, |row| row % 5 == 3);
        for (row, old) in (3..trace.kernels.len()).step_by(5).enumerate() {
            assert_eq!(
                part.names.text(part.kernels.name[row]),
                trace.names.text(trace.kernels.name[old])
            );
            assert_eq!(of_part.get(row), classes.get(old));
        }
    }
}
