//! What a value is: Connect's schema.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::value::Value;

/// The type of a schema, with those of its parts.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Type {
    Int8,
    Int16,
    Int32,
    Int64,
    Float32,
    Float64,
    Boolean,
    String,
    Bytes,
    /// Items of one schema; `None` where every item that was seen is null.
    Array(Option<Schema>),
    /// Keys and values of one schema each; `None` as for an array.
    Map(Option<Schema>, Option<Schema>),
    Struct(Fields),
}

impl Type {
    /// The name in Connect's JSON.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Float32 => "float",
            Self::Float64 => "double",
            Self::Boolean => "boolean",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Array(_) => "array",
            Self::Map(..) => "map",
            Self::Struct(_) => "struct",
        }
    }

    /// Whether both are of one kind, whatever their parts.
    pub fn same_kind(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// A field of a struct.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// Its name.
    pub name: Arc<str>,
    /// What its value is.
    pub schema: Schema,
}

/// The fields of a struct, in their order and by name.
#[derive(Clone, Default)]
pub struct Fields {
    list: Vec<Field>,
    places: HashMap<Arc<str>, usize>,
}

impl Fields {
    /// Adds a field; `false` when there is one of that name.
    pub fn add(&mut self, name: impl Into<Arc<str>>, schema: Schema) -> bool {
        let name = name.into();
        if self.places.contains_key(&name) {
            return false;
        }
        self.places.insert(Arc::clone(&name), self.list.len());
        self.list.push(Field { name, schema });
        true
    }

    /// The place of the field of this name.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// The field of this name.
    pub fn get(&self, name: &str) -> Option<&Field> {
        self.place(name).and_then(|place| self.list.get(place))
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Field> {
        self.list.iter()
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl PartialEq for Fields {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl Eq for Fields {}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.list.iter().map(|field| (&field.name, &field.schema))).finish()
    }
}

/// A schema; a clone costs a counter.
#[derive(Clone)]
pub struct Schema(Arc<Body>);

#[derive(Clone, PartialEq, Eq)]
struct Body {
    kind: Type,
    optional: bool,
    name: Option<Arc<str>>,
    version: Option<i32>,
    doc: Option<Arc<str>>,
    parameters: Option<IndexMap<String, String>>,
    default: Value,
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for Schema {}

impl Schema {
    /// A required schema of this type, without anything else.
    pub fn new(kind: Type) -> Self {
        Self(Arc::new(Body {
            kind,
            optional: false,
            name: None,
            version: None,
            doc: None,
            parameters: None,
            default: Value::Null,
        }))
    }

    /// A struct of these fields; of two with one name the first stays.
    pub fn of_fields<N: Into<Arc<str>>>(fields: impl IntoIterator<Item = (N, Self)>) -> Self {
        let mut all = Fields::default();
        for (name, schema) in fields {
            all.add(name, schema);
        }
        Self::new(Type::Struct(all))
    }

    fn with(mut self, change: impl FnOnce(&mut Body)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// A required schema of this type, with name, version, description and parameters of another.
    #[must_use]
    pub fn like(kind: Type, other: &Self) -> Self {
        let body = &other.0;
        Self::new(kind).with(|new| {
            new.name.clone_from(&body.name);
            new.version = body.version;
            new.doc.clone_from(&body.doc);
            new.parameters.clone_from(&body.parameters);
        })
    }

    /// The same, and null is a value of it or not.
    #[must_use]
    pub fn optional(self, optional: bool) -> Self {
        self.with(|body| body.optional = optional)
    }

    /// The same under a name.
    #[must_use]
    pub fn named(self, name: Option<Arc<str>>) -> Self {
        self.with(|body| body.name = name)
    }

    /// The same in a version.
    #[must_use]
    pub fn versioned(self, version: Option<i32>) -> Self {
        self.with(|body| body.version = version)
    }

    /// The same with a description.
    #[must_use]
    pub fn documented(self, doc: Option<Arc<str>>) -> Self {
        self.with(|body| body.doc = doc)
    }

    /// The same with one parameter more.
    #[must_use]
    pub fn parameter(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(|body| {
            body.parameters.get_or_insert_default().insert(key.into(), value.into());
        })
    }

    /// The same with a value that stands for an absent one; null for none.
    #[must_use]
    pub fn with_default(self, default: Value) -> Self {
        self.with(|body| body.default = default)
    }

    /// Its type.
    pub fn kind(&self) -> &Type {
        &self.0.kind
    }

    /// Whether null is a value of it.
    pub fn is_optional(&self) -> bool {
        self.0.optional
    }

    /// Its name: that of a logical type, or of a struct.
    pub fn name(&self) -> Option<&Arc<str>> {
        self.0.name.as_ref()
    }

    /// Its version.
    pub fn version(&self) -> Option<i32> {
        self.0.version
    }

    /// Its description.
    pub fn doc(&self) -> Option<&Arc<str>> {
        self.0.doc.as_ref()
    }

    /// Its parameters.
    pub fn parameters(&self) -> Option<&IndexMap<String, String>> {
        self.0.parameters.as_ref()
    }

    /// What stands for an absent value; null for nothing.
    pub fn default_value(&self) -> &Value {
        &self.0.default
    }

    /// The fields of a struct.
    pub fn fields(&self) -> Option<&Fields> {
        match self.kind() {
            Type::Struct(fields) => Some(fields),
            _ => None,
        }
    }

    /// Whether structs of one are structs of the other: alike in all but the default.
    pub fn same_struct(&self, other: &Self) -> bool {
        let (a, b) = (&self.0, &other.0);
        Arc::ptr_eq(a, b)
            || a.kind == b.kind
                && (a.optional, a.version) == (b.optional, b.version)
                && (&a.name, &a.doc, &a.parameters) == (&b.name, &b.doc, &b.parameters)
    }

    /// A number that stays while a clone of this schema lives, and is no other's meanwhile.
    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = &self.0;
        write!(f, "{:?}{}", body.kind, if body.optional { "?" } else { "" })?;
        if let Some(name) = &body.name {
            write!(f, " {name}")?;
        }
        if let Some(version) = body.version {
            write!(f, " v{version}")?;
        }
        if let Some(doc) = &body.doc {
            write!(f, " {doc:?}")?;
        }
        if let Some(parameters) = &body.parameters {
            write!(f, " {parameters:?}")?;
        }
        if !matches!(body.default, Value::Null) {
            write!(f, " = {:?}", body.default)?;
        }
        Ok(())
    }
}

/// Wanted for the schema of a plain type.
impl From<Type> for Schema {
    fn from(kind: Type) -> Self {
        Self::new(kind)
    }
}
