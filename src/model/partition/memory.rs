//! The memory that the kernels of a graph need at once.

use super::graph::Units;
use crate::vocabulary::{Op, Operand, OperandKind};

impl Units<'_> {
    /// The most bytes that are alive at once when paths run as kernels one after the other: what a
    /// kernel reads and writes, and what later ones will read. Weights and other constants are
    /// always there, and do not count. What comes from outside counts for the kernels that read it,
    /// and not before: nodes do not say which of them read the same. An elementwise or row kernel
    /// writes over its input, where nobody needs that any more.
    pub(super) fn peak_bytes(&self, cut: &[Vec<usize>]) -> u64 {
        let needed_until: Vec<usize> =
            (0..self.units.len()).map(|unit| self.needed_until(unit, cut)).collect();
        let of_kernel = |(kernel, path): (usize, &Vec<usize>)| {
            let written_before = cut[..kernel].iter().filter_map(|path| path.last());
            let is_alive = |unit: &&usize| needed_until[**unit] >= kernel;
            let alive = written_before.filter(is_alive).map(|&unit| self.output_bytes(unit));
            alive.sum::<u64>() + self.own_bytes(path, |unit| needed_until[unit] == kernel)
        };
        cut.iter().enumerate().map(of_kernel).max().unwrap_or(0)
    }

    /// The last kernel that reads what an op writes; the number of kernels, where something outside
    /// does.
    fn needed_until(&self, unit: usize, cut: &[Vec<usize>]) -> usize {
        let kernel_of = |unit: usize| cut.iter().position(|path| path.contains(&unit));
        let node = self.units[unit].node;
        if unit != self.last_of(node) {
            return kernel_of(unit + 1).unwrap_or(cut.len());
        }
        let readers = (0..self.nodes.len()).filter_map(|reader| {
            let of_reader = &self.nodes[reader];
            let is_operand = of_reader.operands.contains(&node);
            // Which op reads an operand is not known; at the latest it is the last one.
            let by = if is_operand { self.last_of(reader) } else { self.starts[reader] };
            (is_operand || of_reader.input == Some(node)).then(|| kernel_of(by)).flatten()
        });
        let outside = self.nodes[node].is_output.then_some(cut.len());
        readers.chain(outside).max().unwrap_or(cut.len())
    }

    /// Bytes that a kernel needs besides what other kernels wrote. `is_last` tells of an op whether
    /// this kernel is the last one that reads its output.
    fn own_bytes(&self, path: &[usize], is_last: impl Fn(usize) -> bool) -> u64 {
        let (Some(&first), Some(&last)) = (path.first(), path.last()) else { return 0 };
        let operands: u64 = path.iter().map(|&unit| self.operand_bytes(unit)).sum();
        let step = &self.units[first].step;
        let input = step.input.elements() * step.input_element_bytes();
        // Of all that it reads, other kernels wrote these; what it reads twice was counted twice.
        let written = path.iter().flat_map(|&unit| self.read_by(unit));
        let written = written.filter(|unit| !path.contains(unit));
        let inside: u64 = written.map(|unit| self.output_bytes(unit)).sum();
        let output = self.output_bytes(last);
        let is_replaced = |before: &usize| is_last(*before) && self.output_bytes(*before) == output;
        let is_in_place = self.before(first).as_ref().is_some_and(is_replaced)
            && path
                .iter()
                .map(|&unit| self.units[unit].step.op)
                .all(|op| op.is_pointwise() || op.is_row());
        (input + operands).saturating_sub(inside) + if is_in_place { 0 } else { output }
    }

    /// Bytes of an op's operands that are not constants.
    fn operand_bytes(&self, unit: usize) -> u64 {
        let step = &self.units[unit].step;
        let is_activation = |kind: OperandKind| match kind {
            OperandKind::PerElement => true,
            OperandKind::Matrix => matches!(step.op, Op::Qk | Op::Pv),
            OperandKind::PerChannel | OperandKind::Scalar | OperandKind::Random => false,
        };
        let operands = step.op.operands().iter().filter(|operand| is_activation(operand.kind));
        let bytes_of = |operand: &Operand| {
            let is_matrix = operand.kind == OperandKind::Matrix;
            let of_element = if is_matrix { step.dtype.bytes() } else { step.dtype.sum_bytes() };
            step.operand_shape(operand).elements() * of_element
        };
        operands.map(bytes_of).sum()
    }

    /// The ops that write what an op reads, operands with the last op of their node.
    fn read_by(&self, unit: usize) -> Vec<usize> {
        let node = self.units[unit].node;
        let is_last = unit == self.last_of(node);
        let operands = self.nodes[node].operands.iter().filter(|_| is_last);
        let mut read: Vec<usize> = operands.map(|&operand| self.last_of(operand)).collect();
        read.extend(self.before(unit));
        read
    }

    /// The op that writes what an op transforms.
    fn before(&self, unit: usize) -> Option<usize> {
        let node = self.units[unit].node;
        if unit > self.starts[node] {
            return Some(unit - 1);
        }
        self.nodes[node].input.map(|input| self.last_of(input))
    }

    fn output_bytes(&self, unit: usize) -> u64 {
        self.units[unit].step.output_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::graph::GraphNode;
    use super::*;

    /// Bytes of a tensor of 8 x 4 numbers, which all are here.
    const TENSOR: u64 = 8 * 4 * 4;

    fn peak(nodes: &[GraphNode], cut: &[&[usize]]) -> u64 {
        let cut: Vec<Vec<usize>> = cut.iter().map(|path| path.to_vec()).collect();
        Units::of(nodes).unwrap().peak_bytes(&cut) / TENSOR
    }

    fn node(text: &str) -> GraphNode {
        GraphNode::new(text.parse().unwrap())
    }

    #[test]
    fn a_kernel_in_place_needs_no_output() {
        let chain = [node("linear_bias_relu/f32/m8.k4.n4")];
        assert_eq!(peak(&chain, &[&[0, 1, 2]]), 2, "the input and the output");
        assert_eq!(peak(&chain, &[&[0], &[1], &[2]]), 2, "bias and ReLU write over their input");
        // The input of the graph is not its own to write over.
        assert_eq!(peak(&[node("relu/f32/m8.n4")], &[&[0]]), 2);
        assert_eq!(peak(&[node("add_relu/f32/m8.n4")], &[&[0, 1]]), 3);
    }

    #[test]
    fn what_a_kernel_reads_twice_is_there_once() {
        let graph = [
            node("relu/f32/m8.n4"),
            node("linear/f32/m8.k4.n4").reading(0),
            node("add/f32/m8.n4").reading(1).with_operands([0]),
            node("mul/f32/m8.n4").reading(2).with_operands([0]),
        ];
        assert_eq!(peak(&graph, &[&[0], &[1, 2, 3]]), 2, "what ReLU wrote, and the result");
        assert_eq!(peak(&graph, &[&[0], &[1], &[2], &[3]]), 2);
        let twice = [graph[0].clone(), node("add_relu/f32/m8.n4").reading(0).with_operands([0])];
        assert_eq!(peak(&twice, &[&[0], &[1, 2]]), 2);
    }

    #[test]
    fn what_is_read_later_stays() {
        let graph = [
            node("relu/f32/m8.n4"),
            node("linear/f32/m8.k4.n4").reading(0),
            node("add/f32/m8.n4").reading(1).with_operands([0]),
        ];
        // While the linear op runs, its input stays for the sum, which then has both.
        assert_eq!(peak(&graph, &[&[0], &[1], &[2]]), 2);
        let longer = [&graph[..2], &[node("tanh/f32/m8.n4").reading(1)], &graph[2..]].concat();
        let mut longer = longer;
        longer[3].input = Some(2);
        assert_eq!(peak(&longer, &[&[0], &[1], &[2], &[3]]), 2);
        longer[2].is_output = true;
        assert_eq!(peak(&longer, &[&[0], &[1], &[2], &[3]]), 3, "the sum needs a place of its own");
    }
}
