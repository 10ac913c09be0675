//! The reference against a second formulation: whole matrices with `ndarray` in f64.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use fused_kernels::{Inputs, Reference};
use fusion_cost_model::Problem;
use ndarray::{Array1, Array2, Axis, concatenate, s};

/// The inputs of a problem as f64 matrices, in order.
fn matrices(inputs: &Inputs) -> Vec<Array2<f64>> {
    let matrix = |(spec, tensor): (&fused_kernels::InputSpec, &Vec<f32>)| {
        let shape = (spec.shape.rows as usize, spec.shape.cols as usize);
        Array2::from_shape_vec(shape, tensor.iter().map(|&x| f64::from(x)).collect()).unwrap()
    };
    inputs.specs.iter().zip(&inputs.tensors).map(matrix).collect()
}

fn check(text: &str, expected: impl Fn(&[Array2<f64>]) -> Array2<f64>) {
    let problem: Problem = text.parse().unwrap();
    let inputs = Inputs::random(&problem, 11);
    let expected = expected(&matrices(&inputs));
    let reference = Reference::new(&problem, &inputs);
    assert_eq!(reference.rows(), expected.nrows());
    for (row, expected) in expected.axis_iter(Axis(0)).enumerate() {
        for (value, expected) in reference.row(row).iter().zip(expected) {
            assert!((value - expected).abs() < 1e-12, "{text}, row {row}: {value} {expected}");
        }
    }
}

fn relu(matrix: &Array2<f64>) -> Array2<f64> {
    matrix.mapv(|x| x.max(0.0))
}

fn softmax(matrix: &Array2<f64>) -> Array2<f64> {
    let exponentials = matrix.mapv(f64::exp);
    let sums: Array1<f64> = exponentials.sum_axis(Axis(1));
    exponentials / sums.insert_axis(Axis(1))
}

#[test]
fn linear_layers() {
    check("linear_bias_relu/f32/m5.k7.n3", |t| relu(&(t[0].dot(&t[1]) + &t[2])));
    check("mlp/f32/m5.k7.n3.o4", |t| relu(&(t[0].dot(&t[1]) + &t[2])).dot(&t[3]) + &t[4]);
    check("linear+silu+mul/f32/m5.k7.n3", |t| {
        t[0].dot(&t[1]).mapv(|x| x / (1.0 + (-x).exp())) * &t[2]
    });
}

#[test]
fn normalisations() {
    check("add_layernorm/f32/m4.n9", |t| {
        let sum = &t[0] + &t[1];
        let mean = sum.mean_axis(Axis(1)).unwrap().insert_axis(Axis(1));
        let centred = &sum - &mean;
        let variance = centred.mapv(|x| x * x).mean_axis(Axis(1)).unwrap().insert_axis(Axis(1));
        centred / variance.mapv(|v| (v + 1e-5).sqrt()) * &t[2] + &t[3]
    });
    check("add+rms_norm/f32/m4.n9", |t| {
        let sum = &t[0] + &t[1];
        let square = sum.mapv(|x| x * x).mean_axis(Axis(1)).unwrap().insert_axis(Axis(1));
        // PyTorch's default is the epsilon of the dtype.
        sum / square.mapv(|v| (v + f64::from(f32::EPSILON)).sqrt()) * &t[2]
    });
}

#[test]
fn attention_and_its_output_projection() {
    let (heads, queries, keys, d) = (3, 5, 7, 4);
    check("multihead_linear/f32/b1.h3.q5.kv7.d4.n6", |t| {
        let head = |head: usize| {
            let q = t[0].slice(s![head * queries..(head + 1) * queries, ..]);
            let k = t[1].slice(s![head * keys..(head + 1) * keys, ..]);
            let v = t[2].slice(s![head * keys..(head + 1) * keys, ..]);
            // The kernels take the scale in f32.
            let scale = f64::from((1.0 / (d as f64).sqrt()) as f32);
            softmax(&(q.dot(&k.t()) * scale)).dot(&v)
        };
        let outputs: Vec<Array2<f64>> = (0..heads).map(head).collect();
        let views: Vec<_> = outputs.iter().map(|output| output.view()).collect();
        let joined: Array2<f64> = concatenate(Axis(1), &views).unwrap();
        joined.dot(&t[3])
    });
}

#[test]
fn a_convolution_as_a_sum_of_shifted_products() {
    // n1.c2.h4.w5.k3.r3.s3 with padding 1: out[y, x] = sum over taps of in[y+r-1, x+s-1] W[r, s].
    check("conv_bn_relu/f32/n1.c2.h4.w5.k3.r3.s3.pad1", |t| {
        let (height, width, taps) = (4_usize, 5_usize, 3_usize);
        let mut output = Array2::zeros((height * width, 3));
        for r in 0..taps {
            for c in 0..taps {
                let weights = t[1].slice(s![(r * taps + c) * 2..(r * taps + c + 1) * 2, ..]);
                for y in 0..height {
                    for x in 0..width {
                        let (in_y, in_x) = (y + r, x + c);
                        if (1..=height).contains(&in_y) && (1..=width).contains(&in_x) {
                            let pixel = t[0].row((in_y - 1) * width + in_x - 1);
                            let mut target = output.row_mut(y * width + x);
                            target += &pixel.dot(&weights);
                        }
                    }
                }
            }
        }
        let gain = &t[4] / &t[3].mapv(|v| (v + 1e-5).sqrt());
        relu(&((output - &t[2]) * gain + &t[5]))
    });
}
