//! Puts an ONNX file together.

use prost::Message;
use prost::bytes::Bytes;

use crate::onnx::messages::{
    AttributeProto, DimensionProto, EXTERNAL, GraphProto, ModelProto, NodeProto,
    OperatorSetIdProto, StringStringEntryProto, TensorProto, TensorShapeProto, TensorTypeProto,
    TypeProto, ValueInfoProto, attribute_type,
};

/// `TensorProto.DataType`.
pub(super) const FLOAT: i32 = 1;
pub(super) const INT64: i32 = 7;
pub(super) const FLOAT16: i32 = 10;

/// A dimension of an input.
#[derive(Clone, Copy)]
pub(super) enum Size {
    Known(i64),
    Open(&'static str),
}

/// An ONNX file in the making. Nodes and tensors are named by their operator and a number.
pub(super) struct Model {
    graph: GraphProto,
    /// The type of weights and numbers.
    data_type: i32,
    opset: i64,
}

impl Model {
    pub(super) fn new(name: &str, data_type: i32, opset: i64) -> Self {
        let graph = GraphProto { name: name.to_owned(), ..GraphProto::default() };
        Self { graph, data_type, opset }
    }

    pub(super) fn input(&mut self, name: &str, data_type: i32, sizes: &[Size]) -> String {
        self.graph.input.push(value(name, data_type, sizes));
        name.to_owned()
    }

    pub(super) fn output(&mut self, name: &str, sizes: &[Size]) {
        self.graph.output.push(value(name, self.data_type, sizes));
    }

    /// A weight without elements.
    pub(super) fn weight(&mut self, dims: &[i64]) -> String {
        let entry = |key: &str, value: &str| StringStringEntryProto {
            key: key.to_owned(),
            value: value.to_owned(),
        };
        self.constant(TensorProto {
            dims: dims.to_vec(),
            data_type: self.data_type,
            external_data: vec![entry("location", "weights.bin")],
            data_location: EXTERNAL,
            ..TensorProto::default()
        })
    }

    /// A number of the model's type.
    #[expect(clippy::cast_possible_truncation, reason = "that is the precision of the model")]
    pub(super) fn number(&mut self, number: f64) -> String {
        let raw = match self.data_type {
            FLOAT16 => half::f16::from_f64(number).to_le_bytes().to_vec(),
            _ => (number as f32).to_le_bytes().to_vec(),
        };
        let (data_type, raw_data) = (self.data_type, Bytes::from(raw));
        self.constant(TensorProto { data_type, raw_data, ..TensorProto::default() })
    }

    /// A number in single precision, whatever the model's type.
    pub(super) fn single(&mut self, number: f32) -> String {
        let raw_data = Bytes::from(number.to_le_bytes().to_vec());
        self.constant(TensorProto { data_type: FLOAT, raw_data, ..TensorProto::default() })
    }

    /// A list of whole numbers.
    pub(super) fn list(&mut self, values: &[i64]) -> String {
        let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(TensorProto {
            dims: vec![i64::try_from(values.len()).unwrap_or(i64::MAX)],
            data_type: INT64,
            raw_data: Bytes::from(raw),
            ..TensorProto::default()
        })
    }

    fn constant(&mut self, tensor: TensorProto) -> String {
        let name = format!("constant_{}", self.graph.initializer.len());
        self.graph.initializer.push(TensorProto { name: name.clone(), ..tensor });
        name
    }

    /// A node, and the name of what it writes.
    pub(super) fn op(&mut self, op: &str, inputs: &[&str]) -> String {
        self.op_with(op, inputs, Vec::new())
    }

    pub(super) fn op_with(
        &mut self,
        op: &str,
        inputs: &[&str],
        attribute: Vec<AttributeProto>,
    ) -> String {
        let name = format!("{op}_{}", self.graph.node.len());
        self.graph.node.push(NodeProto {
            input: inputs.iter().map(|&input| input.to_owned()).collect(),
            output: vec![format!("{name}_output")],
            name: name.clone(),
            op_type: op.to_owned(),
            attribute,
            domain: String::new(),
        });
        format!("{name}_output")
    }

    pub(super) fn finish(self) -> Vec<u8> {
        /// The version of the format that came with the oldest operators used here.
        const IR_VERSION: i64 = 7;
        let opset = OperatorSetIdProto { domain: String::new(), version: self.opset };
        let model = ModelProto {
            ir_version: IR_VERSION,
            graph: Some(self.graph),
            opset_import: vec![opset],
            functions: Vec::new(),
        };
        model.encode_to_vec()
    }
}

fn value(name: &str, elem_type: i32, sizes: &[Size]) -> ValueInfoProto {
    let dim = |size: &Size| match *size {
        Size::Known(size) => DimensionProto { dim_value: Some(size), dim_param: None },
        Size::Open(name) => DimensionProto { dim_value: None, dim_param: Some(name.to_owned()) },
    };
    let shape = Some(TensorShapeProto { dim: sizes.iter().map(dim).collect() });
    let tensor_type = Some(TensorTypeProto { elem_type, shape });
    ValueInfoProto { name: name.to_owned(), r#type: Some(TypeProto { tensor_type }) }
}

pub(super) fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        i: Some(value),
        r#type: attribute_type::INT,
        ..AttributeProto::default()
    }
}

pub(super) fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        ints: values.to_vec(),
        r#type: attribute_type::INTS,
        ..AttributeProto::default()
    }
}
