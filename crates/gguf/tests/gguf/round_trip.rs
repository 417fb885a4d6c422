use std::collections::HashMap;
use std::io::Cursor;

use correx_gguf::testing::Writer;
use correx_gguf::{
    FloatKind, Floats, Gguf, NumberKind, Numbers, Problem, TensorType, Texts, Value,
};
use proptest::prelude::*;

fn read(writer: &Writer) -> Result<Gguf, Problem> {
    let bytes = writer.to_bytes();
    Gguf::read(Cursor::new(&bytes), bytes.len() as u64)
}

fn values() -> impl Strategy<Value = Value> {
    let list = |width: usize| {
        prop::collection::vec(any::<u8>(), 0..12 * width).prop_map(move |mut bytes| {
            bytes.truncate(bytes.len() / width * width);
            bytes
        })
    };
    let numbers = |kind: NumberKind| {
        list(kind.width()).prop_map(move |mut bytes| {
            match kind {
                NumberKind::Bool => bytes.iter_mut().for_each(|byte| *byte &= 1),
                NumberKind::U64 => bytes.chunks_mut(8).for_each(|number| number[7] &= 127),
                _ => {}
            }
            Value::Numbers(Numbers::new(kind, bytes).expect("whole numbers"))
        })
    };
    prop_oneof![
        any::<u64>().prop_map(Value::Unsigned),
        any::<u32>().prop_map(Value::from),
        any::<i64>().prop_map(Value::Signed),
        any::<i32>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("no number equals it", |number| !number.is_nan())
            .prop_map(Value::Float),
        any::<f32>()
            .prop_filter("no number equals it", |number| !number.is_nan())
            .prop_map(Value::from),
        any::<bool>().prop_map(Value::Bool),
        any::<String>().prop_map(Value::Text),
        prop::collection::vec(any::<String>(), 0..9)
            .prop_map(|texts| { Value::Texts(texts.iter().collect::<Texts>()) }),
        list(4).prop_map(|bytes| Value::Floats(
            Floats::new(FloatKind::F32, bytes).expect("whole numbers")
        )),
        list(8).prop_map(|bytes| Value::Floats(
            Floats::new(FloatKind::F64, bytes).expect("whole numbers")
        )),
        prop_oneof![
            numbers(NumberKind::U8),
            numbers(NumberKind::I8),
            numbers(NumberKind::U16),
            numbers(NumberKind::I16),
            numbers(NumberKind::U32),
            numbers(NumberKind::I32),
            numbers(NumberKind::U64),
            numbers(NumberKind::I64),
            numbers(NumberKind::Bool),
        ],
    ]
}

fn tensors() -> impl Strategy<Value = Vec<(TensorType, Vec<usize>)>> {
    let tensor = (0..TensorType::ALL.len(), prop::collection::vec(1usize..4, 1..5)).prop_map(
        |(place, mut shape)| {
            let kind = TensorType::ALL[place];
            if let Some(row) = shape.last_mut() {
                *row *= kind.block_size();
            }
            (kind, shape)
        },
    );
    prop::collection::vec(tensor, 0..6)
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        version in 1u32..4,
        alignment in prop::option::of(prop::sample::select(vec![8u32, 32, 64, 4096])),
        entries in prop::collection::hash_map("[a-z.]{1,20}", values(), 0..8),
        tensors in tensors(),
    ) {
        let mut writer = Writer::new().version(version);
        if let Some(alignment) = alignment {
            writer = writer.alignment(alignment);
        }
        for (key, value) in &entries {
            writer = writer.entry(key, value.clone());
        }
        for (number, (kind, shape)) in tensors.iter().enumerate() {
            writer = writer.zeros(&format!("t{number}"), *kind, shape);
        }
        let gguf = read(&writer).unwrap();
        prop_assert_eq!(gguf.version, version);
        let mut found: HashMap<String, Value> = gguf.metadata.clone();
        prop_assert_eq!(found.remove("general.alignment"), alignment.map(Value::from));
        prop_assert_eq!(found, entries);
        prop_assert_eq!(gguf.tensors.len(), tensors.len());
        for (number, (kind, shape)) in tensors.iter().enumerate() {
            let tensor = &gguf.tensors[&format!("t{number}")];
            prop_assert_eq!((tensor.kind, &tensor.shape), (*kind, shape));
            prop_assert!(tensor.offset.is_multiple_of(u64::from(alignment.unwrap_or(32))));
        }
    }
}

#[test]
fn the_bytes_of_a_tensor_are_where_the_header_says() {
    for version in 1..=3 {
        let writer = Writer::new()
            .version(version)
            .alignment(64)
            .tensor("a", TensorType::I8, &[5], [1, 2, 3, 4, 5])
            .f32("b", &[2, 1], &[0.5, -2.0]);
        let (bytes, gguf) = (writer.to_bytes(), read(&writer).unwrap());
        let tensor = |name: &str| {
            let tensor = &gguf.tensors[name];
            &bytes[tensor.offset as usize..][..tensor.bytes as usize]
        };
        assert_eq!(tensor("a"), [1, 2, 3, 4, 5]);
        assert_eq!(tensor("b"), [0.5f32.to_le_bytes(), (-2f32).to_le_bytes()].concat());
    }
}

#[test]
fn numbers_of_every_width_keep_their_sign_and_value() {
    let list = |kind, bytes: &[u8]| {
        Numbers::new(kind, bytes.to_vec()).map(|list| list.iter().collect::<Vec<i64>>())
    };
    assert_eq!(list(NumberKind::I8, &[255, 1]), Some(vec![-1, 1]));
    assert_eq!(list(NumberKind::U8, &[255, 1]), Some(vec![255, 1]));
    assert_eq!(list(NumberKind::I16, &[254, 255]), Some(vec![-2]));
    assert_eq!(list(NumberKind::U32, &[255; 4]), Some(vec![i64::from(u32::MAX)]));
    assert_eq!(list(NumberKind::I32, &[255; 4]), Some(vec![-1]));
    assert_eq!(list(NumberKind::I64, &[255; 8]), Some(vec![-1]));
    assert_eq!(list(NumberKind::Bool, &[0, 1]), Some(vec![0, 1]));
    assert_eq!(list(NumberKind::U64, &[255; 8]), None, "beyond what is kept");
    assert_eq!(list(NumberKind::Bool, &[2]), None);
    assert_eq!(list(NumberKind::U16, &[1]), None);
    let numbers = Numbers::from_iter([7i32, -7]);
    assert_eq!((numbers.get(1), numbers.get(2)), (Some(-7), None));
    let floats = Floats::new(FloatKind::F64, 0.25f64.to_le_bytes().to_vec()).unwrap();
    assert_eq!(floats.iter().collect::<Vec<f32>>(), [0.25]);
}

#[test]
fn text_that_is_not_quite_text_keeps_its_length() {
    let text = b"a\xff\xfe\xe2\x82z\xe2\x82\xac\xf0\x9f";
    let value = [&(text.len() as u64).to_le_bytes()[..], text].concat();
    let list = [&8u32.to_le_bytes()[..], &1u64.to_le_bytes(), &value].concat();
    let gguf = read(&Writer::new().raw_entry("one", 8, &value).raw_entry("list", 9, &list));
    let gguf = gguf.unwrap();
    assert_eq!(gguf.text("one"), Some("a????z€??"));
    assert_eq!(&gguf.texts("list").unwrap()[0], "a????z€??");
}
