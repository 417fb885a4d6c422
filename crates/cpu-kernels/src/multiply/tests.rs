use half::f16;
use proptest::prelude::*;

use super::*;
use crate::kind::BlockKind;
use crate::packed::PackError;

const KINDS: [BlockKind; 3] = [BlockKind::Q4_1, BlockKind::Q5_0, BlockKind::Q8_0];

/// Numbers that look random and are always the same.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        self.0 >> 33
    }

    fn float(&mut self) -> f32 {
        (self.next() % 20_001) as f32 / 10_000.0 - 1.0
    }

    /// Blocks as in a file, with any codes and sensible scales.
    fn blocks(&mut self, kind: BlockKind, count: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..count {
            let start = bytes.len();
            bytes.extend((0..kind.block_bytes()).map(|_| 0));
            bytes[start..].iter_mut().for_each(|byte| *byte = self.next() as u8);
            bytes[start..start + 2].copy_from_slice(&f16::from_f32(self.float()).to_le_bytes());
            if kind == BlockKind::Q4_1 {
                let minimum = f16::from_f32(self.float()).to_le_bytes();
                bytes[start + 2..start + 4].copy_from_slice(&minimum);
            }
        }
        bytes
    }
}

/// A file's weight, from the definition of the format.
fn weight(kind: BlockKind, block: &[u8], place: usize) -> f32 {
    let half = |at: usize| f16::from_le_bytes([block[at], block[at + 1]]).to_f32();
    let nibble = |bytes: &[u8]| {
        if place < 16 { bytes[place] & 15 } else { bytes[place - 16] >> 4 }
    };
    match kind {
        BlockKind::Q4_1 => half(0) * f32::from(nibble(&block[4..])) + half(2),
        BlockKind::Q5_0 => {
            let bits = u32::from_le_bytes(block[2..6].try_into().unwrap());
            let code = u32::from(nibble(&block[6..])) | (bits >> place & 1) << 4;
            half(0) * (code as f32 - 16.0)
        }
        BlockKind::Q8_0 => half(0) * f32::from(block[2 + place].cast_signed()),
    }
}

fn threads(count: usize) -> Threads {
    Threads::new(count).unwrap()
}

fn product(
    instructions: Instructions,
    matrix: &PackedMatrix,
    activations: &[f32],
    threads: &Threads,
) -> Vec<f32> {
    let input = QuantizedRows::with(instructions, activations, matrix.columns()).unwrap();
    let mut output = vec![f32::NAN; input.rows() * matrix.rows()];
    let products = vec![Product { matrix, output: &mut output }];
    multiply_with(instructions, &input, products, threads).unwrap();
    output
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_product_is_the_same_however_it_is_computed(
        seed: u64,
        kind in prop::sample::select(&KINDS[..]),
        rows in 1usize..70,
        blocks in 1usize..6,
        tokens in 1usize..70,
        cut in 0usize..70,
    ) {
        let mut numbers = Numbers(seed);
        let columns = 32 * blocks;
        let bytes = numbers.blocks(kind, rows * blocks);
        let matrix = PackedMatrix::pack(kind, rows, columns, &bytes).unwrap();
        let activations: Vec<f32> = (0..tokens * columns).map(|_| numbers.float()).collect();
        let one = Threads::single();
        let portable = product(Instructions::Portable, &matrix, &activations, &one);
        let best = Instructions::detect();
        prop_assert_eq!(&product(best, &matrix, &activations, &one), &portable);
        prop_assert_eq!(&product(best, &matrix, &activations, &threads(2)), &portable);
        let (front, back) = activations.split_at(cut.min(tokens) * columns);
        let mut parts = product(best, &matrix, front, &one);
        parts.extend(product(best, &matrix, back, &one));
        prop_assert_eq!(&parts, &portable);

        // Against the format's definition, with the error that eight bits of activation allow.
        for (token, activations) in activations.chunks_exact(columns).enumerate().take(3) {
            for row in 0..rows {
                let (mut exact, mut size) = (0.0f64, 0.0f64);
                for (column, activation) in activations.iter().enumerate() {
                    let at = (row * blocks + column / 32) * kind.block_bytes();
                    let weight = weight(kind, &bytes[at..at + kind.block_bytes()], column % 32);
                    exact += f64::from(weight) * f64::from(*activation);
                    size += f64::from(weight).abs() / 127.0 * 0.51;
                }
                let found = f64::from(portable[token * rows + row]);
                prop_assert!((found - exact).abs() <= size + 1e-4, "{found} for {exact}");
            }
        }
    }

    #[test]
    fn a_row_comes_back_as_it_was_in_the_file(
        seed: u64,
        kind in prop::sample::select(&KINDS[..]),
        rows in 1usize..20,
        blocks in 1usize..4,
    ) {
        let bytes = Numbers(seed).blocks(kind, rows * blocks);
        let matrix = PackedMatrix::pack(kind, rows, 32 * blocks, &bytes).unwrap();
        prop_assert_eq!(matrix.bytes(), bytes.len() / rows * rows.next_multiple_of(8));
        let mut found = vec![0.0; 32 * blocks];
        for row in 0..rows {
            matrix.row(row, &mut found).unwrap();
            let expected: Vec<f32> = bytes[row * blocks * kind.block_bytes()..]
                .chunks_exact(kind.block_bytes())
                .take(blocks)
                .flat_map(|block| (0..32).map(move |place| weight(kind, block, place)))
                .collect();
            prop_assert_eq!(&found, &expected);
        }
    }

    #[test]
    fn quantizing_is_the_same_on_every_processor_and_near_the_number(
        block in prop::collection::vec(-1e3f32..1e3, 64),
    ) {
        let rows = QuantizedRows::with(Instructions::Portable, &block, 32).unwrap();
        let best = QuantizedRows::new(&block, 32).unwrap();
        prop_assert_eq!(&rows.codes, &best.codes);
        prop_assert_eq!(&rows.scales, &best.scales);
        prop_assert_eq!(&rows.sums, &best.sums);
        for (place, number) in block.iter().enumerate() {
            let found = f32::from(rows.codes[place]) * rows.scales[place / 32];
            prop_assert!((found - number).abs() <= rows.scales[place / 32] * 0.5001);
            prop_assert!(rows.codes[place] != i8::MIN);
        }
    }
}

#[test]
fn the_largest_codes_do_not_overflow() {
    for kind in KINDS {
        for byte in [0u8, 0xff, 0x80, 0x7f] {
            let mut block = vec![byte; kind.block_bytes()];
            block[..2].copy_from_slice(&f16::ONE.to_le_bytes());
            if kind == BlockKind::Q4_1 {
                block[2..4].copy_from_slice(&f16::ZERO.to_le_bytes());
            }
            let matrix = PackedMatrix::pack(kind, 1, 32, &block).unwrap();
            for sign in [1.0, -1.0] {
                let expected: f32 = (0..32).map(|place| weight(kind, &block, place) * sign).sum();
                let input = [sign; 32];
                for instructions in [Instructions::Portable, Instructions::detect()] {
                    let found = product(instructions, &matrix, &input, &Threads::single())[0];
                    assert!((found - expected).abs() < 1e-3, "{kind:?}: {found} for {expected}");
                }
            }
        }
    }
}

#[test]
fn what_is_not_finite_stays_visible_and_what_is_tiny_is_zero() {
    let matrix = PackedMatrix::pack(BlockKind::Q8_0, 1, 32, &Numbers(1).blocks(BlockKind::Q8_0, 1));
    let matrix = matrix.unwrap();
    let one = Threads::single();
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut input = [0.5; 64];
        input[40] = bad;
        let found = product(Instructions::detect(), &matrix, &input, &one);
        assert!(found[0].is_finite() && found[1].is_nan(), "{bad}: {found:?}");
    }
    assert_eq!(product(Instructions::detect(), &matrix, &[1e-42; 32], &one), [0.0]);
    assert_eq!(product(Instructions::detect(), &matrix, &[], &one), []);
}

#[test]
fn several_matrices_are_multiplied_in_one_go() {
    let mut numbers = Numbers(7);
    let matrices: Vec<PackedMatrix> = [(KINDS[0], 40), (KINDS[1], 9), (KINDS[2], 3)]
        .map(|(kind, rows)| {
            PackedMatrix::pack(kind, rows, 64, &numbers.blocks(kind, rows * 2)).unwrap()
        })
        .into();
    let activations: Vec<f32> = (0..64 * 5).map(|_| numbers.float()).collect();
    let input = QuantizedRows::new(&activations, 64).unwrap();
    let mut outputs: Vec<Vec<f32>> =
        matrices.iter().map(|matrix| vec![0.0; 5 * matrix.rows()]).collect();
    let products = matrices.iter().zip(&mut outputs);
    let products = products.map(|(matrix, output)| Product { matrix, output }).collect();
    multiply_many(&input, products, &threads(3)).unwrap();
    for (matrix, output) in matrices.iter().zip(&outputs) {
        let mut alone = vec![0.0; output.len()];
        matrix.multiply(&activations, 5, &mut alone, &Threads::single()).unwrap();
        assert_eq!(output, &alone);
    }
}

#[test]
fn lengths_that_do_not_fit_are_errors() {
    let bytes = Numbers(3).blocks(BlockKind::Q4_1, 4);
    let pack = |rows, columns, bytes: &[u8]| {
        PackedMatrix::pack(BlockKind::Q4_1, rows, columns, bytes).map(|_| ())
    };
    assert_eq!(pack(2, 48, &bytes), Err(PackError::Shape { rows: 2, columns: 48 }));
    assert_eq!(pack(0, 64, &[]), Err(PackError::Shape { rows: 0, columns: 64 }));
    assert_eq!(pack(3, 64, &bytes), Err(PackError::Length { expected: 120, found: 80 }));
    let huge = usize::MAX / 32 * 32;
    assert_eq!(pack(3, huge, &bytes), Err(PackError::Shape { rows: 3, columns: huge }));
    let matrix = PackedMatrix::pack(BlockKind::Q4_1, 2, 64, &bytes).unwrap();
    let one = Threads::single();
    let mut output = [7.0; 4];
    for (activations, tokens, room) in [(127, 2, 4), (64, 2, 4), (128, 2, 3)] {
        let found = matrix.multiply(&vec![0.0; activations], tokens, &mut output[..room], &one);
        assert!(found.is_err(), "{activations} {tokens} {room}");
    }
    let narrow = QuantizedRows::new(&[0.0; 32], 32).unwrap();
    let products = vec![Product { matrix: &matrix, output: &mut output[..2] }];
    assert!(multiply_many(&narrow, products, &one).is_err());
    assert_eq!(output, [7.0; 4]);
    assert!(matrix.row(2, &mut [0.0; 64]).is_err() && matrix.row(1, &mut [0.0; 32]).is_err());
}
