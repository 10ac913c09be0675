//! The patches of an image as a matrix (im2col).

use std::ops::Range;

use super::super::element::Element;
use super::shape::Shape;

/// Gathers the patches of a group of channels for output rows: one row of `depth` numbers per output
/// pixel.
///
/// # Safety
///
/// `image` must be the image's first number, `patches` valid for all patches.
pub(super) unsafe fn gather<E: Element>(
    shape: &Shape,
    image: *const E,
    group: usize,
    rows: Range<usize>,
    patches: *mut E,
) {
    let Shape { in_h, in_w, in_channels, out_w, r, s, stride, pad, .. } = *shape;
    let channels = shape.group_channels();
    let mut target = patches;
    for y in rows {
        for x in 0..out_w {
            for tap_y in 0..r {
                // Coordinates in the padded image; what lies in the padding is zero.
                let in_y = (y * stride + tap_y).wrapping_sub(pad);
                let first_x = (x * stride).wrapping_sub(pad);
                // SAFETY: the source is inside the image, the target inside the patches: each
                // tap writes `channels` numbers, and there are r s taps for each pixel.
                unsafe {
                    for tap_x in 0..s {
                        let in_x = first_x.wrapping_add(tap_x);
                        if in_y < in_h && in_x < in_w {
                            let pixel = (in_y * in_w + in_x) * in_channels + group * channels;
                            target.copy_from_nonoverlapping(image.add(pixel), channels);
                        } else {
                            target.write_bytes(0, channels);
                        }
                        target = target.add(channels);
                    }
                }
            }
        }
    }
}
