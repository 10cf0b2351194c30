//! Bodies in Kubernetes' protobuf encoding: `kubectl create` sends Namespaces, Secrets and ConfigMaps in it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// The content type.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

const MAGIC: &[u8] = b"k8s\0";

/// A field's number, its name in JSON, and its type.
type Field = (u64, &'static str, Shape);

#[derive(Clone, Copy)]
enum Shape {
    Text,
    Texts,
    Flag,
    TextMap,
    BytesMap,
    Message(&'static [Field]),
    /// What only the server sets: a client sends it empty.
    Ignored,
}

const ENVELOPE: &[Field] = &[
    (
        1,
        "type",
        Shape::Message(&[(1, "apiVersion", Shape::Text), (2, "kind", Shape::Text)]),
    ),
    (3, "contentEncoding", Shape::Ignored),
    (4, "contentType", Shape::Ignored),
];

const METADATA: Field = (
    1,
    "metadata",
    Shape::Message(&[
        (1, "name", Shape::Text),
        (2, "generateName", Shape::Text),
        (3, "namespace", Shape::Text),
        (4, "selfLink", Shape::Ignored),
        (5, "uid", Shape::Text),
        (6, "resourceVersion", Shape::Text),
        (7, "generation", Shape::Ignored),
        (8, "creationTimestamp", Shape::Ignored),
        (11, "labels", Shape::TextMap),
        (12, "annotations", Shape::TextMap),
        (14, "finalizers", Shape::Texts),
    ]),
);

const NAMESPACE: &[Field] = &[
    METADATA,
    (2, "spec", Shape::Ignored),
    (3, "status", Shape::Ignored),
];

const SECRET: &[Field] = &[
    METADATA,
    (2, "data", Shape::BytesMap),
    (3, "type", Shape::Text),
    (4, "stringData", Shape::TextMap),
    (5, "immutable", Shape::Flag),
];

const CONFIG_MAP: &[Field] = &[
    METADATA,
    (2, "data", Shape::TextMap),
    (3, "binaryData", Shape::BytesMap),
    (4, "immutable", Shape::Flag),
];

/// Decodes an object; `None` for a kind or a field that is not known here.
pub(crate) fn decode(body: &[u8]) -> Option<Value> {
    let envelope = body.strip_prefix(MAGIC)?;
    let mut object = Map::new();
    let mut content: &[u8] = &[];
    for entry in entries(envelope) {
        match entry? {
            (2, Wire::Bytes(bytes)) => content = bytes,
            (number, wire) => set(&mut object, ENVELOPE, number, &wire)?,
        }
    }
    let Some(Value::Object(mut object)) = object.shift_remove("type") else {
        return None;
    };
    let fields = match object.get("kind")?.as_str()? {
        "Namespace" => NAMESPACE,
        "Secret" => SECRET,
        "ConfigMap" => CONFIG_MAP,
        _ => return None,
    };
    object.extend(message(content, fields)?);
    Some(Value::Object(object))
}

fn message(bytes: &[u8], fields: &[Field]) -> Option<Map<String, Value>> {
    let mut object = Map::new();
    for entry in entries(bytes) {
        let (number, wire) = entry?;
        set(&mut object, fields, number, &wire)?;
    }
    Some(object)
}

fn set(
    object: &mut Map<String, Value>,
    fields: &[Field],
    number: u64,
    wire: &Wire<'_>,
) -> Option<()> {
    let (_, name, shape) = fields.iter().find(|field| field.0 == number)?;
    let value = match (shape, wire) {
        (Shape::Ignored, _) => return Some(()),
        (Shape::Flag, Wire::Number(number)) => (*number != 0).into(),
        (Shape::Text, Wire::Bytes(bytes)) => text(bytes)?.into(),
        (Shape::Message(fields), Wire::Bytes(bytes)) => message(bytes, fields)?.into(),
        (Shape::Texts, Wire::Bytes(bytes)) => {
            let mut list = match object.shift_remove(*name) {
                Some(Value::Array(list)) => list,
                _ => Vec::new(),
            };
            list.push(text(bytes)?.into());
            list.into()
        }
        (Shape::TextMap | Shape::BytesMap, Wire::Bytes(bytes)) => {
            let mut map = match object.shift_remove(*name) {
                Some(Value::Object(map)) => map,
                _ => Map::new(),
            };
            let (mut key, mut value): (&str, &[u8]) = ("", &[]);
            for entry in entries(bytes) {
                match entry? {
                    (1, Wire::Bytes(bytes)) => key = text(bytes)?,
                    (2, Wire::Bytes(bytes)) => value = bytes,
                    _ => return None,
                }
            }
            let value = match shape {
                Shape::BytesMap => STANDARD.encode(value),
                _ => text(value)?.to_owned(),
            };
            map.insert(key.to_owned(), value.into());
            map.into()
        }
        _ => return None,
    };
    // Go's encoder writes empty texts; in JSON they are left out.
    if value != "" {
        object.insert((*name).to_owned(), value);
    }
    Some(())
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

enum Wire<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

/// The fields of a message; ends with `None` where it is broken.
fn entries(mut rest: &[u8]) -> impl Iterator<Item = Option<(u64, Wire<'_>)>> {
    let mut broken = false;
    std::iter::from_fn(move || {
        if rest.is_empty() || broken {
            return None;
        }
        let entry = entry(&mut rest);
        broken = entry.is_none();
        Some(entry)
    })
}

fn entry<'b>(rest: &mut &'b [u8]) -> Option<(u64, Wire<'b>)> {
    let tag = varint(rest)?;
    let wire = match tag & 7 {
        0 => Wire::Number(varint(rest)?),
        2 => {
            let length = usize::try_from(varint(rest)?).ok()?;
            let (bytes, after) = rest.split_at_checked(length)?;
            *rest = after;
            Wire::Bytes(bytes)
        }
        _ => return None,
    };
    Some((tag >> 3, wire))
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut field = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        field.extend_from_slice(bytes);
        field
    }

    fn sent(kind: &str, object: &[u8]) -> Vec<u8> {
        let id = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &id), field(2, object)].concat()
    }

    #[test]
    fn a_secret_is_decoded() {
        let metadata = [field(1, b"token"), field(2, b""), field(8, b"")].concat();
        let data = [field(1, b"key"), field(2, b"value")].concat();
        let secret = [field(1, &metadata), field(2, &data), field(3, b"Opaque")].concat();
        assert_eq!(
            decode(&sent("Secret", &secret)),
            Some(json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "token"},
                "data": {"key": "dmFsdWU="},
                "type": "Opaque",
            }))
        );
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        assert_eq!(decode(&sent("Pod", &[])), None);
        assert_eq!(decode(&sent("Secret", &field(9, b"x"))), None);
        assert_eq!(decode(&sent("Secret", &[0x0a, 0x7f])), None);
        assert_eq!(decode(b"{}"), None);
    }
}
