use fusion_cost_model::ConvSizes;

use super::*;
use crate::cpu::conforms::{conforms, cpus};

#[test]
fn taps_inside_are_those_that_the_image_has() {
    for (size, r, stride, pad) in
        [(1, 1, 1, 0), (1, 3, 1, 1), (7, 3, 2, 1), (5, 5, 3, 4), (2, 7, 1, 3), (9, 2, 4, 0)]
    {
        let sizes =
            ConvSizes { n: 1, c: 1, h: size, w: size, k: 1, r, s: r, stride, pad, groups: 1 };
        let shape = Shape::from(sizes);
        let whole = whole(&shape, shape.r, shape.in_h);
        for at in 0..shape.out_h {
            let lies_inside = |tap: &usize| {
                (shape.pad..shape.pad + shape.in_h).contains(&(at * shape.stride + tap))
            };
            let expected: Vec<usize> = (0..shape.r).filter(lies_inside).collect();
            let taps = inside(at, &shape, shape.r, shape.in_h);
            assert_eq!(taps.collect::<Vec<_>>(), expected, "{sizes:?} at {at}");
            assert_eq!(whole.contains(&at), expected.len() == shape.r, "{sizes:?} at {at}");
        }
    }
}

/// Rows shorter and longer than the pixels that are summed together, windows that reach over both
/// edges at once, and fewer channels than a vector has, as many, and a few more.
#[test]
fn every_width_of_image_and_channels() {
    for mut cpu in cpus() {
        for (width, channels, filter) in [
            (1, 1, "r1.s1"),
            (1, 16, "r3.s3.pad1"),
            (2, 17, "r3.s3.pad1"),
            (5, 15, "r3.s3.pad1"),
            (6, 31, "r3.s3.pad1"),
            (9, 64, "r3.s3.pad1"),
            (11, 33, "r5.s5.pad4"),
            (13, 7, "r3.s3.stride2.pad1"),
            (23, 48, "r2.s2.stride3"),
            (29, 131, "r3.s3.pad1"),
            (3, 97, "r7.s7.pad3"),
        ] {
            let text = format!(
                "conv_bn_relu/f32/n2.c{channels}.h{width}.w{width}.k{channels}.{filter}\
                 .groups{channels}"
            );
            conforms(&mut cpu, &text);
            conforms(&mut cpu, &text.replace("/f32/", "/bf16/"));
            conforms(&mut cpu, &text.replace("/f32/", "/f16/"));
            let of_integers = text.replace("bn_relu/f32", "bn_relu+requantize/i8");
            conforms(&mut cpu, &of_integers);
        }
    }
}
