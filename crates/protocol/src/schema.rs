//! The table in which a message is written down.
//!
//! A row is a field, as in Kafka's message schemas:
//!
//! ```text
//! name: Type = default, versions, null versions, tag number;
//! ```
//!
//! `versions` are those that carry the field, as a range. A row that says `null` has an `Option`
//! for a type, and the versions in which null may stand. A row that says `tag` is a tagged field,
//! written only when it is not the default. A version that lacks a field skips it in encoding and
//! gives its default in decoding. Default is the type's own unless the row has another.

macro_rules! schema {
    ($(
        $(#[$doc:meta])*
        struct $name:ident {
            $(
                $(#[$field_doc:meta])*
                $field:ident: $type:ty $(= $default:expr)?, $versions:expr
                    $(, null $null:expr)? $(, tag $tag:literal)?;
            )*
        }
    )*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $( $(#[$field_doc])* pub $field: $type, )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: schema!(@default $($default)?), )* }
            }
        }

        #[cfg(test)]
        impl $crate::tests::Sample for $name {
            fn sample(choices: &mut $crate::tests::Choices<'_>) -> Self {
                let mut value = Self::default();
                $( schema!(@sample value.$field, choices, $versions, [$($null)?]); )*
                value
            }
        }

        impl $crate::wire::Wire for $name {
            fn read(
                reader: &mut $crate::reader::Reader,
            ) -> Result<Self, $crate::DecodeError> {
                let mut value = Self::default();
                $( schema!(@read value.$field, reader, $versions, [$($null)?], [$($tag)?]); )*
                reader.tagged(|_tag, _reader| {
                    $( schema!(@read_tagged value.$field, _tag, _reader, $versions, [$($tag)?]); )*
                    Ok(false)
                })?;
                Ok(value)
            }

            fn write(&self, writer: &mut $crate::writer::Writer<'_>) {
                $( schema!(@write self.$field, writer, $versions, [$($null)?], [$($tag)?]); )*
                let fields = [
                    $( schema!(
                        @write_tagged self.$field, writer, $versions,
                        [$($default)?], [$($tag)?]
                    ), )*
                ];
                writer.tagged(fields);
            }
        }
    )* };

    (@default) => { Default::default() };
    (@default $default:expr) => { $default };

    (@sample $to:expr, $choices:ident, $versions:expr, []) => {
        if ($versions).contains(&$choices.version) {
            $to = $crate::tests::Sample::sample($choices);
        }
    };
    (@sample $to:expr, $choices:ident, $versions:expr, [$null:expr]) => {
        if ($versions).contains(&$choices.version) {
            $to = $choices.nullable(($null).contains(&$choices.version));
        }
    };

    (@read $to:expr, $reader:ident, $versions:expr, $null:tt, [$tag:literal]) => {};
    (@read $to:expr, $reader:ident, $versions:expr, [], []) => {
        if ($versions).contains(&$reader.version()) {
            $to = $crate::wire::Wire::read($reader)?;
        }
    };
    (@read $to:expr, $reader:ident, $versions:expr, [$null:expr], []) => {
        if ($versions).contains(&$reader.version()) {
            let allowed = ($null).contains(&$reader.version());
            $to = $crate::wire::read_nullable($reader, allowed)?;
        }
    };

    (@read_tagged $to:expr, $sent:ident, $reader:ident, $versions:expr, []) => {};
    (@read_tagged $to:expr, $sent:ident, $reader:ident, $versions:expr, [$tag:literal]) => {
        if $sent == $tag && ($versions).contains(&$reader.version()) {
            $to = $crate::wire::Wire::read($reader)?;
            return Ok(true);
        }
    };

    (@write $from:expr, $writer:ident, $versions:expr, $null:tt, [$tag:literal]) => {};
    (@write $from:expr, $writer:ident, $versions:expr, [], []) => {
        if ($versions).contains(&$writer.version) {
            $crate::wire::Wire::write(&$from, $writer);
        }
    };
    (@write $from:expr, $writer:ident, $versions:expr, [$null:expr], []) => {
        if ($versions).contains(&$writer.version) {
            let allowed = ($null).contains(&$writer.version);
            $crate::wire::write_nullable($from.as_ref(), $writer, allowed);
        }
    };

    (@write_tagged $from:expr, $writer:ident, $versions:expr, $default:tt, []) => { None };
    (@write_tagged $from:expr, $writer:ident, $versions:expr, [$($default:expr)?], [$tag:literal]) => {
        $writer.tagged_field($tag, ($versions).contains(&$writer.version), &$from, &schema!(@default $($default)?))
    };
}
