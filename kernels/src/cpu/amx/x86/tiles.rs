//! The tiles of the unit, and what is done with them.

use crate::cpu::element::Left;

/// Tiles that there are.
pub(super) const TILES: usize = 8;

/// Rows of a tile, and groups of a row.
pub(super) const ROWS: usize = 16;

/// Bytes of a row.
pub(super) const ROW_BYTES: usize = 64;

/// Columns of a tile, whose sums and groups have four bytes each.
pub(super) const COLS: usize = ROW_BYTES / GROUP_BYTES;

/// Bytes of a group.
pub(super) const GROUP_BYTES: usize = 4;

/// The first tile of the left side and of the right: those before are sums.
const LEFT: usize = 4;
const RIGHT: usize = 6;

/// The tile of sums in a row and a column of tiles.
pub(super) const fn sums(row: usize, col: usize) -> usize {
    2 * row + col
}

/// That of the left side in a row of tiles.
pub(super) const fn left(row: usize) -> usize {
    LEFT + row
}

/// That of the right side in a column of tiles.
pub(super) const fn right(col: usize) -> usize {
    RIGHT + col
}

/// How large tiles are, as the instruction that sets them reads it.
#[repr(C, align(64))]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shapes {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

impl Shapes {
    /// For two tiles of rows and two of columns, with whole groups between them.
    pub(super) fn new(rows: [usize; 2], cols: [usize; 2]) -> Self {
        let mut shapes =
            Self { palette: 1, start_row: 0, reserved: [0; 14], row_bytes: [0; 16], rows: [0; 16] };
        let mut set = |tile: usize, rows: usize, bytes: usize| {
            // One that is not used must have neither rows nor bytes.
            if rows > 0 && bytes > 0 {
                shapes.rows[tile] = rows as u8;
                shapes.row_bytes[tile] = bytes as u16;
            }
        };
        for (row, rows) in rows.into_iter().enumerate() {
            set(left(row), rows, ROW_BYTES);
            for (col, cols) in cols.into_iter().enumerate() {
                set(sums(row, col), rows, cols * GROUP_BYTES);
            }
        }
        for (col, cols) in cols.into_iter().enumerate() {
            set(right(col), ROWS, cols * GROUP_BYTES);
        }
        shapes
    }

    /// What stands before the sizes.
    #[cfg(test)]
    pub(super) fn head(&self) -> [u8; 16] {
        let mut head = [0; 16];
        (head[0], head[1]) = (self.palette, self.start_row);
        head[2..].copy_from_slice(&self.reserved);
        head
    }

    /// Rows of each tile, and bytes of a row.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> [[usize; 2]; 16] {
        std::array::from_fn(|tile| [self.rows[tile].into(), self.row_bytes[tile].into()])
    }
}

/// The unit, or a model of it. The sizes of its tiles are set before anything else is done.
///
/// # Safety
///
/// Each function needs a processor with the unit, and a process that is granted its use; and each tile
/// must have a size, which fits those of the others and the memory that is named.
pub(super) trait Unit {
    /// Sets the sizes of the tiles.
    unsafe fn set(shapes: &Shapes);

    /// Gives the tiles back, so that the system need not save them.
    unsafe fn release();

    /// Makes all sums zero.
    unsafe fn zero<const TILE: usize>();

    /// Reads the rows of a tile, `stride` bytes from one to the next.
    unsafe fn load<const TILE: usize>(rows: *const u8, stride: usize);

    /// Writes them.
    unsafe fn store<const TILE: usize>(rows: *mut u8, stride: usize);

    /// Adds the products of two tiles to a third one.
    unsafe fn add_products<E: Dot, const SUMS: usize, const LEFT: usize, const RIGHT: usize>();
}

/// Numbers that the unit multiplies.
pub(crate) trait Dot: Left {
    /// Those of a group.
    const TOGETHER: usize;

    /// As for [`Unit::add_products`].
    ///
    /// # Safety
    ///
    /// As for that.
    unsafe fn add_products<const SUMS: usize, const LEFT: usize, const RIGHT: usize>();

    /// Makes a number of whole sums.
    fn finish(sum: f32, factor: f32) -> f32;
}
