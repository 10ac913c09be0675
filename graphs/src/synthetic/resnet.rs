//! ResNet-50: <https://arxiv.org/abs/1512.03385>, with the stride in the 3 x 3 convolution as in
//! torchvision.

use super::model::{FLOAT, Model, Size, int, ints};

/// ResNet-50 for images of 224 x 224, with the open dimension `batch`: 53 convolutions, each with a
/// batch norm of its own, and one linear layer.
#[must_use]
pub fn resnet50() -> Vec<u8> {
    let mut model = Model::new("resnet50", FLOAT, 13);
    let size = [Size::Open("batch"), Size::Known(3), Size::Known(224), Size::Known(224)];
    let image = model.input("image", FLOAT, &size);
    let stem = conv_bn(&mut model, &image, 3, 64, 7, 2);
    let stem = model.op("Relu", &[&stem]);
    let pool = [ints("kernel_shape", &[3, 3]), ints("strides", &[2, 2]), ints("pads", &[1; 4])];
    let mut x = model.op_with("MaxPool", &[&stem], pool.to_vec());
    let mut channels = 64;
    for (stage, blocks) in [3, 4, 6, 3].into_iter().enumerate() {
        let width = 64 << stage;
        for block in 0..blocks {
            let stride = if block == 0 && stage > 0 { 2 } else { 1 };
            x = bottleneck(&mut model, &x, channels, width, stride);
            channels = 4 * width;
        }
    }
    let pooled = model.op("GlobalAveragePool", &[&x]);
    let flat = model.op_with("Flatten", &[&pooled], vec![int("axis", 1)]);
    let (weight, bias) = (model.weight(&[1000, channels]), model.weight(&[1000]));
    let logits = model.op_with("Gemm", &[&flat, &weight, &bias], vec![int("transB", 1)]);
    model.output(&logits, &[Size::Open("batch"), Size::Known(1000)]);
    model.finish()
}

/// Three convolutions around a shortcut, which has one of its own where the size changes.
fn bottleneck(model: &mut Model, x: &str, channels: i64, width: i64, stride: i64) -> String {
    let first = conv_bn(model, x, channels, width, 1, 1);
    let first = model.op("Relu", &[&first]);
    let second = conv_bn(model, &first, width, width, 3, stride);
    let second = model.op("Relu", &[&second]);
    let third = conv_bn(model, &second, width, 4 * width, 1, 1);
    let shortcut = if channels == 4 * width {
        x.to_owned()
    } else {
        conv_bn(model, x, channels, 4 * width, 1, stride)
    };
    let sum = model.op("Add", &[&third, &shortcut]);
    model.op("Relu", &[&sum])
}

fn conv_bn(model: &mut Model, x: &str, from: i64, to: i64, size: i64, stride: i64) -> String {
    let filter = model.weight(&[to, from, size, size]);
    let attributes = vec![
        ints("kernel_shape", &[size, size]),
        ints("strides", &[stride, stride]),
        ints("pads", &[size / 2; 4]),
        ints("dilations", &[1, 1]),
        int("group", 1),
    ];
    let image = model.op_with("Conv", &[x, &filter], attributes);
    let parameters = [(); 4].map(|()| model.weight(&[to]));
    let [weight, shift, mean, variance] = &parameters;
    model.op("BatchNormalization", &[&image, weight, shift, mean, variance])
}
