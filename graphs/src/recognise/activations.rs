//! Activations that exporters write as several nodes. All are products: GELU is `x`, 0.5 and
//! `1 + erf(x / sqrt 2)` in any order.

use std::f64::consts::FRAC_1_SQRT_2;

use fusion_cost_model::Pointwise;

use super::flow::Flow;
use super::links::{Links, is_near};
use super::unit::Unit;
use crate::shapes::elements;
use crate::tensor::TensorId;

/// The factor in the approximation of GELU, `sqrt(2 / pi)`, and the cubic term's.
const TANH_FACTOR: f64 = 0.797_884_560_802_865_4;
const TANH_CUBIC: f64 = 0.044_715;

/// More nodes than any activation has. Without a bound, long chains of products would be walked from
/// each of their nodes.
const MOST_NODES: usize = 12;

/// The activation whose last node is a Mul or Div.
pub(crate) fn at(flow: &Flow, taken: &[bool], last: usize) -> Option<Unit> {
    let node = flow.node(last);
    if !node.is_any(&["Mul", "Div"]) {
        return None;
    }
    let output = node.output()?;
    for rule in [silu, hardswish, gelu, gelu_tanh] {
        let mut links = Links::from(flow, taken, last);
        let Some(product) = product_of(&mut links, output) else { continue };
        if let Some((op, input)) = rule(&mut links, &product)
            && links.is_closed()
            && has_as_many(flow, input, output)
        {
            return Unit::pointwise(flow, op, input, links.nodes, output).ok();
        }
    }
    None
}

/// Whether two tensors have as many elements. Where the factors of a product are views of one tensor,
/// and the product has more elements, they broadcast against each other.
fn has_as_many(flow: &Flow, input: TensorId, output: TensorId) -> bool {
    let count = |id| flow.shape(id).map(elements);
    count(input).is_some() && count(input) == count(output)
}

/// A number times some tensors.
#[derive(Debug, Clone, PartialEq)]
struct Product {
    number: f64,
    factors: Vec<TensorId>,
}

/// What a tensor is the product of: through every Mul, and Div by a number, whose result nobody
/// else reads.
fn product_of(links: &mut Links, id: TensorId) -> Option<Product> {
    let mut product = Product { number: 1.0, factors: Vec::new() };
    let mut rest = vec![id];
    let mut is_first = true;
    while let Some(id) = rest.pop() {
        let is_inner = is_first || links.flow.sole_reader(id).is_some();
        is_first = false;
        let found = links.peek(id, &["Mul", "Div"]).filter(|_| is_inner);
        let Some((_, node)) = found else {
            product.factors.push(id);
            continue;
        };
        match links.with_number(node) {
            Some((other, number)) => {
                product.number *= if node.is("Div") { number.recip() } else { number };
                rest.push(other);
            }
            None if node.is("Mul") => rest.extend([node.input(0)?, node.input(1)?]),
            None => {
                product.factors.push(id);
                continue;
            }
        }
        links.step(id, &["Mul", "Div"]);
        if links.nodes.len() > MOST_NODES {
            return None;
        }
    }
    Some(product)
}

/// Two factors in the order `(x, other)` in which a rule accepts the other.
fn pair(product: &Product) -> impl Iterator<Item = (TensorId, TensorId)> + use<> {
    let pairs = match product.factors.as_slice() {
        &[a, b] => vec![(a, b), (b, a)],
        _ => Vec::new(),
    };
    pairs.into_iter()
}

/// `x sigmoid(x)`.
fn silu(links: &mut Links, product: &Product) -> Option<(Pointwise, TensorId)> {
    let is_sigmoid = |x: TensorId, other: TensorId| {
        let node = links.peek(other, &["Sigmoid"])?.1;
        links.flow.is_same(node.input(0)?, x).then_some(())
    };
    let (x, other) = pair(product).find(|&(x, other)| is_sigmoid(x, other).is_some())?;
    links.step(other, &["Sigmoid"])?;
    is_near(product.number, 1.0).then_some((Pointwise::Silu, x))
}

/// `x hardsigmoid(x)`, or `x clip(x + 3, 0, 6) / 6`.
fn hardswish(links: &mut Links, product: &Product) -> Option<(Pointwise, TensorId)> {
    for (x, other) in pair(product) {
        if let Some((_, node)) = links.peek(other, &["HardSigmoid"])
            && links.flow.is_same(node.input(0)?, x)
            && super::pointwise::is_hard_sigmoid(node)
            && is_near(product.number, 1.0)
        {
            links.step(other, &["HardSigmoid"]);
            return Some((Pointwise::HardSwish, x));
        }
        if let Some((_, clip)) = links.peek(other, &["Clip"])
            && super::pointwise::clip_bounds(links.flow, clip) == Some((0.0, 6.0))
            && let Some((_, add)) = links.peek(clip.input(0)?, &["Add"])
            && let Some((of, three)) = links.with_number(add)
            && links.flow.is_same(of, x)
            && is_near(three, 3.0)
            && is_near(product.number, 1.0 / 6.0)
        {
            links.step(other, &["Clip"]);
            links.step(clip.input(0)?, &["Add"]);
            return Some((Pointwise::HardSwish, x));
        }
    }
    None
}

/// `x 0.5 (1 + erf(x / sqrt 2))`.
fn gelu(links: &mut Links, product: &Product) -> Option<(Pointwise, TensorId)> {
    let (x, inner) = one_plus(links, product, "Erf")?;
    let inner = product_of(links, inner)?;
    let is_of_x = matches!(*inner.factors, [factor] if links.flow.is_same(factor, x));
    (is_of_x && is_near(inner.number, FRAC_1_SQRT_2)).then_some((Pointwise::Gelu, x))
}

/// `x 0.5 (1 + tanh(0.798 (x + 0.0447 x^3)))`.
fn gelu_tanh(links: &mut Links, product: &Product) -> Option<(Pointwise, TensorId)> {
    let (x, inner) = one_plus(links, product, "Tanh")?;
    let inner = product_of(links, inner)?;
    let &[sum] = inner.factors.as_slice() else { return None };
    let add = links.step(sum, &["Add"])?;
    let (a, b) = (add.input(0)?, add.input(1)?);
    let cubic = if links.flow.is_same(a, x) { b } else { a };
    if !(links.flow.is_same(a, x) || links.flow.is_same(b, x)) {
        return None;
    }
    let cubic = product_of(links, cubic)?;
    let is_cube = match cubic.factors.as_slice() {
        &[power] if !links.flow.is_same(power, x) => {
            let pow = links.step(power, &["Pow"])?;
            let (of, exponent) = links.with_number(pow)?;
            links.flow.is_same(of, x) && is_near(exponent, 3.0)
        }
        factors => factors.len() == 3 && factors.iter().all(|&one| links.flow.is_same(one, x)),
    };
    let has_numbers = is_near(inner.number, TANH_FACTOR) && is_near(cubic.number, TANH_CUBIC);
    (is_cube && has_numbers).then_some((Pointwise::GeluTanh, x))
}

/// Of the product `0.5 x (1 + f(inner))`, `x` and `inner`.
fn one_plus(links: &mut Links, product: &Product, function: &str) -> Option<(TensorId, TensorId)> {
    if !is_near(product.number, 0.5) {
        return None;
    }
    for (x, other) in pair(product) {
        if let Some((_, add)) = links.peek(other, &["Add"])
            && let Some((value, one)) = links.with_number(add)
            && is_near(one, 1.0)
            && let Some((_, node)) = links.peek(value, &[function])
        {
            links.step(other, &["Add"]);
            links.step(value, &[function]);
            return Some((x, node.input(0)?));
        }
    }
    None
}
