use std::io::Cursor;

use correx_gguf::testing::Writer;
use correx_gguf::{Gguf, TensorType};

#[test]
fn every_tensor_type_is_read_with_its_size() {
    for kind in TensorType::ALL {
        let row = 2 * kind.block_size();
        let bytes = Writer::new().zeros("w", *kind, &[3, row]).to_bytes();
        let gguf = Gguf::read(Cursor::new(&bytes), bytes.len() as u64).unwrap();
        let tensor = &gguf.tensors["w"];
        assert_eq!((tensor.kind, tensor.bytes), (*kind, 6 * kind.block_bytes() as u64));
        assert_eq!(TensorType::from_number(kind.number()), Some(*kind));
        assert_eq!(tensor.offset + tensor.bytes, bytes.len() as u64, "{kind}");
    }
    assert_eq!(TensorType::ALL.len(), 43);
    assert_eq!(TensorType::from_number(43), None);
}

#[test]
fn bits_per_weight_are_what_the_names_promise() {
    // Blocks of 256 as ggml lays them out: bits per weight times 16.
    for (kind, sixteenths) in [
        (TensorType::Q2K, 42),
        (TensorType::Q3K, 55),
        (TensorType::Q4K, 72),
        (TensorType::Q5K, 88),
        (TensorType::Q6K, 105),
        (TensorType::IQ1_S, 25),
        (TensorType::IQ2_XXS, 33),
        (TensorType::IQ2_XS, 37),
        (TensorType::IQ3_XXS, 49),
        (TensorType::IQ3_S, 55),
        (TensorType::IQ4_XS, 68),
        (TensorType::TQ1_0, 27),
        (TensorType::TQ2_0, 33),
        (TensorType::IQ4_NL, 72),
        (TensorType::MXFP4, 68),
        (TensorType::NVFP4, 72),
        (TensorType::Q8_0, 136),
        (TensorType::F64, 1024),
    ] {
        assert_eq!(kind.block_bytes() * 128, sixteenths * kind.block_size(), "{kind}");
    }
}
