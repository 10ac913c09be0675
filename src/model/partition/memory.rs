//! The memory that the kernels of a graph need at once.

use super::graph::Units;
use crate::vocabulary::{Op, Operand, OperandKind, Step};

/// What an op reads of what another one writes.
#[derive(Debug, Clone, Copy)]
struct Read {
    /// The op that writes it.
    of: usize,
    /// Whether it is an input or an operand that the op has, and not one that its node names beyond
    /// those.
    is_own: bool,
}

/// Which op reads what, and until when it is needed.
struct Reads {
    /// What each op reads.
    of_unit: Vec<Vec<Read>>,
    /// The last kernel that reads what an op writes; the number of kernels, where something outside
    /// does.
    needed_until: Vec<usize>,
}

impl Units<'_> {
    /// The most bytes that are alive at once when paths run as kernels one after the other: what a
    /// kernel reads and writes, and what later ones will read. Weights and other constants are
    /// always there, and do not count. What comes from outside counts for the kernels that read it,
    /// and not before: nodes do not say which of them read the same. An elementwise or row kernel
    /// writes over its input, where nobody needs that any more.
    pub(super) fn peak_bytes(&self, cut: &[Vec<usize>]) -> u64 {
        let reads = self.reads(cut);
        let (mut most, mut alive) = (0, 0);
        // What is needed no longer when a kernel has run.
        let mut ending = vec![0; cut.len()];
        for (kernel, path) in cut.iter().enumerate() {
            most = most.max(alive + self.own_bytes(path, kernel, &reads));
            let Some(&last) = path.last() else { continue };
            alive += self.output_bytes(last);
            if let Some(ending) = ending.get_mut(reads.needed_until[last]) {
                *ending += self.output_bytes(last);
            }
            alive -= ending[kernel];
        }
        most
    }

    fn reads(&self, cut: &[Vec<usize>]) -> Reads {
        let mut of_unit: Vec<Vec<Read>> = vec![Vec::new(); self.units.len()];
        for (unit, of_unit) in of_unit.iter_mut().enumerate() {
            of_unit.extend(self.before(unit).map(|of| Read { of, is_own: true }));
        }
        for node in 0..self.nodes.len() {
            for (unit, read) in self.operands(node) {
                of_unit[unit].push(read);
            }
        }
        let mut kernel_of = vec![cut.len(); self.units.len()];
        for (kernel, path) in cut.iter().enumerate() {
            for &unit in path {
                kernel_of[unit] = kernel;
            }
        }
        let mut last_reader: Vec<Option<usize>> = vec![None; self.units.len()];
        for (unit, of_unit) in of_unit.iter().enumerate() {
            for read in of_unit {
                let reader = Some(kernel_of[unit]);
                last_reader[read.of] = last_reader[read.of].max(reader);
            }
        }
        for (node, of_node) in self.nodes.iter().enumerate() {
            if of_node.is_output {
                last_reader[self.last_of(node)] = None;
            }
        }
        let needed_until = last_reader.into_iter().map(|last| last.unwrap_or(cut.len())).collect();
        Reads { of_unit, needed_until }
    }

    /// What a node names as operands, with the ops that read them: those of its ops that have
    /// operands, in their order. Where it names fewer, its last ones do: the others come from outside.
    /// Where it names more, its last op does.
    fn operands(&self, node: usize) -> impl Iterator<Item = (usize, Read)> {
        let units = self.starts[node]..=self.last_of(node);
        let mut slots: Vec<usize> = Vec::new();
        for unit in units {
            let count = activations(&self.units[unit].step).count();
            slots.extend(std::iter::repeat_n(unit, count));
        }
        let named = &self.nodes[node].operands;
        let unnamed = slots.len().saturating_sub(named.len());
        let last = self.last_of(node);
        named.iter().enumerate().map(move |(index, &of)| {
            let slot = slots.get(unnamed + index);
            let read = Read { of: self.last_of(of), is_own: slot.is_some() };
            (slot.copied().unwrap_or(last), read)
        })
    }

    /// Bytes that a kernel needs besides what other kernels wrote.
    fn own_bytes(&self, path: &[usize], kernel: usize, reads: &Reads) -> u64 {
        let (Some(&first), Some(&last)) = (path.first(), path.last()) else { return 0 };
        let operands: u64 = path.iter().map(|&unit| operand_bytes(&self.units[unit].step)).sum();
        let step = &self.units[first].step;
        let input = step.input.elements() * step.input_element_bytes();
        // Of all that it reads, other kernels wrote these; what it reads twice was counted twice.
        let read = path.iter().flat_map(|&unit| &reads.of_unit[unit]);
        let written = read.filter(|read| read.is_own && !path.contains(&read.of));
        let inside: u64 = written.map(|read| self.output_bytes(read.of)).sum();
        let output = self.output_bytes(last);
        let is_replaced = |before: &usize| {
            reads.needed_until[*before] == kernel && self.output_bytes(*before) == output
        };
        let is_in_place = self.before(first).as_ref().is_some_and(is_replaced)
            && path
                .iter()
                .map(|&unit| self.units[unit].step.op)
                .all(|op| op.is_pointwise() || op.is_row());
        (input + operands).saturating_sub(inside) + if is_in_place { 0 } else { output }
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

/// The operands of an op that are not constants.
pub(super) fn activations(step: &Step) -> impl Iterator<Item = &Operand> {
    step.op.operands().iter().filter(|operand| match operand.kind {
        OperandKind::PerElement => true,
        OperandKind::Matrix => matches!(step.op, Op::Qk | Op::Pv),
        OperandKind::PerChannel | OperandKind::Scalar | OperandKind::Random => false,
    })
}

/// Their bytes.
fn operand_bytes(step: &Step) -> u64 {
    let bytes_of = |operand: &Operand| {
        let is_matrix = operand.kind == OperandKind::Matrix;
        let of_element = if is_matrix { step.dtype.bytes() } else { step.dtype.sum_bytes() };
        step.operand_shape(operand).elements() * of_element
    };
    activations(step).map(bytes_of).sum()
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

    #[test]
    fn an_operand_is_read_by_the_op_that_has_it() {
        // What ReLU wrote is added before the last op, and is needed no longer.
        let graph = [
            node("relu/f32/m8.n4"),
            node("linear/f32/m8.k4.n4").reading(0),
            node("add_relu/f32/m8.n4").reading(1).with_operands([0]),
        ];
        let apart = [&graph[..2], &[node("add/f32/m8.n4").reading(1).with_operands([0])]].concat();
        assert_eq!(peak(&apart, &[&[0], &[1], &[2]]), 2);
        assert_eq!(peak(&graph, &[&[0], &[1], &[2], &[3]]), 2);
        assert_eq!(peak(&graph, &[&[0], &[1], &[2, 3]]), 2);
        // The first of two operands is that of the first op.
        let two = [
            node("relu/f32/m8.n4"),
            node("linear/f32/m8.k4.n4").reading(0),
            node("tanh/f32/m8.n4").reading(1),
            node("mul_add_relu/f32/m8.n4").reading(2).with_operands([0, 1]),
        ];
        assert_eq!(peak(&two, &[&[0], &[1], &[2], &[3], &[4], &[5]]), 3);
    }

    #[test]
    fn an_operand_that_no_op_has_is_alive_until_the_last_one() {
        let graph = [node("relu/f32/m8.n4"), node("tanh/f32/m8.n4").with_operands([0])];
        assert_eq!(peak(&graph, &[&[0], &[1]]), 3, "its input, its output, and what ReLU wrote");
    }
}
