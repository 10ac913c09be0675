//! Windows that slide over an image: convolutions and pools.

use crate::dims::MAX_DIM;
use crate::graph::Node;

/// How a window slides over the spatial dimensions of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) size: Vec<u64>,
    pub(crate) strides: Vec<u64>,
    pub(crate) dilations: Vec<u64>,
    /// Padding before and after the image.
    pub(crate) before: Vec<u64>,
    pub(crate) after: Vec<u64>,
    /// Whether a window that is only partly inside counts.
    rounds_up: bool,
}

impl Window {
    /// The window of a node over an image `[n, c, spatial..]`; `None` where an attribute is none
    /// that a window can have.
    pub(crate) fn of(node: &Node, image: &[u64], size: &[u64]) -> Option<Self> {
        let spatial = image.get(2..)?;
        if spatial.len() != size.len() || size.contains(&0) {
            return None;
        }
        let rank = size.len();
        let list = |name: &str, count: usize, default: u64| match node.attributes.ints(name) {
            Some(values) => sizes(values).filter(|values| values.len() == count),
            None => Some(vec![default; count]),
        };
        let strides = list("strides", rank, 1).filter(|strides| !strides.contains(&0))?;
        let dilations = list("dilations", rank, 1).filter(|dilations| !dilations.contains(&0))?;
        let explicit = list("pads", 2 * rank, 0)?;
        let (before, after) = match node.attributes.text("auto_pad").unwrap_or("NOTSET") {
            "NOTSET" => (explicit[..rank].to_vec(), explicit[rank..].to_vec()),
            "VALID" => (vec![0; rank], vec![0; rank]),
            auto @ ("SAME_UPPER" | "SAME_LOWER") => {
                let total = |axis: usize| {
                    let covered = (spatial[axis].div_ceil(strides[axis]).max(1) - 1)
                        .saturating_mul(strides[axis])
                        .saturating_add(extent(size[axis], dilations[axis]));
                    covered.saturating_sub(spatial[axis])
                };
                let less = (0..rank).map(|axis| total(axis) / 2).collect();
                let more = (0..rank).map(|axis| total(axis).div_ceil(2)).collect();
                if auto == "SAME_UPPER" { (less, more) } else { (more, less) }
            }
            _ => return None,
        };
        let rounds_up = node.attributes.int("ceil_mode").unwrap_or(0) != 0;
        Some(Self { size: size.to_vec(), strides, dilations, before, after, rounds_up })
    }

    /// The spatial dimensions of the result, or why there is none.
    pub(crate) fn output(&self, spatial: &[u64]) -> Result<Vec<u64>, String> {
        let one = |(axis, &image): (usize, &u64)| {
            let (before, after) = (self.before[axis], self.after[axis]);
            let padded = image.saturating_add(before).saturating_add(after);
            let extent = extent(self.size[axis], self.dilations[axis]);
            let room = padded.checked_sub(extent).ok_or_else(|| {
                format!("its window of {extent} is larger than its padded input of {padded}")
            })?;
            let stride = self.strides[axis];
            let mut steps = room / stride;
            // The last window must begin inside the image or the padding before it.
            if self.rounds_up && room % stride != 0 && (steps + 1) * stride < image + before {
                steps += 1;
            }
            Ok(steps + 1)
        };
        spatial.iter().enumerate().map(one).collect()
    }
}

/// What a dilated window covers.
const fn extent(size: u64, dilation: u64) -> u64 {
    (size - 1) * dilation + 1
}

/// Sizes from an attribute, unless one is negative or no size.
fn sizes(values: &[i64]) -> Option<Vec<u64>> {
    let size = |&value: &i64| u64::try_from(value).ok().filter(|&size| size <= MAX_DIM);
    values.iter().map(size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::{Attribute, Attributes};
    use crate::graph::Origin;

    fn node(attributes: &[(&str, Attribute)]) -> Node {
        Node {
            name: String::new(),
            op: "MaxPool".to_owned(),
            origin: Origin::Known,
            inputs: Vec::new(),
            captured: Vec::new(),
            outputs: Vec::new(),
            attributes: attributes
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect::<Attributes>(),
        }
    }

    fn output(attributes: &[(&str, Attribute)], image: u64, size: u64) -> Option<u64> {
        let window = Window::of(&node(attributes), &[1, 1, image], &[size])?;
        window.output(&[image]).ok().map(|output| output[0])
    }

    fn ints(name: &'static str, values: &[i64]) -> (&'static str, Attribute) {
        (name, Attribute::Ints(values.to_vec()))
    }

    fn same(auto: &str) -> (&'static str, Attribute) {
        ("auto_pad", Attribute::Text(auto.to_owned()))
    }

    #[test]
    fn results_have_the_size_that_onnx_defines() {
        let stride = |stride| ints("strides", &[stride]);
        assert_eq!(output(&[], 8, 3), Some(6));
        assert_eq!(output(&[stride(2), ints("pads", &[3, 3])], 224, 7), Some(112));
        assert_eq!(output(&[ints("dilations", &[2])], 8, 3), Some(4));
        assert_eq!(output(&[stride(2), same("SAME_UPPER")], 7, 3), Some(4));
        assert_eq!(output(&[same("SAME_LOWER")], 7, 4), Some(7));
        let ceil = ("ceil_mode", Attribute::Int(1));
        assert_eq!(output(&[stride(2), ceil.clone()], 8, 3), Some(4));
        assert_eq!(output(&[stride(2)], 8, 3), Some(3));
        // The last window would begin in the padding behind the image.
        assert_eq!(output(&[stride(2), ints("pads", &[1, 1]), ceil], 5, 2), Some(3));
        assert_eq!(output(&[], 2, 3), None);
    }

    #[test]
    fn attributes_that_no_window_has_make_none() {
        for bad in [
            ints("strides", &[0]),
            ints("strides", &[1, 1]),
            ints("pads", &[-1, 0]),
            ints("pads", &[i64::MAX, i64::MAX]),
            ints("dilations", &[0]),
            same("SOMEHOW"),
        ] {
            assert_eq!(Window::of(&node(&[bad]), &[1, 1, 8], &[3]), None);
        }
        let huge = [ints("dilations", &[4_294_967_295]), same("SAME_UPPER")];
        let window = Window::of(&node(&huge), &[1, 1, 4_294_967_295], &[4_294_967_295]).unwrap();
        let _ = window.output(&[4_294_967_295]);
    }
}
