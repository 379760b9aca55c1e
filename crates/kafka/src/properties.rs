//! Files in the format of Java's `Properties`.

use std::collections::BTreeMap;

/// Reads keys and values: `key=value`, `key: value` or `key value`, comments behind `#` or `!`, a
/// backslash at a line's end joins the next line, `\n`, `\t`, `\uXXXX` and an escaped separator.
/// A key that stands twice has its last value, as in Java.
pub(crate) fn parse(text: &str) -> BTreeMap<String, String> {
    let mut properties = BTreeMap::new();
    let mut lines = text.lines();
    while let Some(first) = lines.next() {
        let mut line = first.trim_start().to_owned();
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        while goes_on(&line) {
            line.pop();
            line.push_str(lines.next().unwrap_or_default().trim_start());
        }
        let (key, value) = split(&line);
        properties.insert(unescape(key), unescape(value));
    }
    properties
}

/// Whether a line ends with a backslash that is not itself escaped.
fn goes_on(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// The key ends at the first `=`, `:` or blank that is not escaped; blanks around one separator
/// belong to it.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line.char_indices().find(|(_, char)| {
        let found = !escaped && (matches!(char, '=' | ':') || char.is_whitespace());
        escaped = *char == '\\' && !escaped;
        found
    });
    let Some((end, _)) = end else { return (line, "") };
    let (key, rest) = line.split_at(end);
    let rest = rest.trim_start();
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (key, rest.trim_start())
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            plain.push(char);
            continue;
        }
        match chars.next() {
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some('r') => plain.push('\r'),
            Some('f') => plain.push('\u{c}'),
            Some('u') => plain.push(unicode(&mut chars)),
            Some(other) => plain.push(other),
            None => {}
        }
    }
    plain
}

/// Four hexadecimal digits as a character; what is none is marked as unreadable.
fn unicode(chars: &mut std::str::Chars<'_>) -> char {
    let digits: String = chars.by_ref().take(4).collect();
    let code = u32::from_str_radix(&digits, 16).ok();
    code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_reads_as_java_reads_it() {
        let read = parse(
            "# comment\n! too\n\n  a=1\nb : two words \nc three\nd\\=e=4\nlong=first, \\\n    second\n\
             path=C:\\\\dir\nu=\\u00e9\\n\nempty=\nalone\na=5",
        );
        let expected = [
            ("a", "5"),
            ("alone", ""),
            ("b", "two words "),
            ("c", "three"),
            ("d=e", "4"),
            ("empty", ""),
            ("long", "first, second"),
            ("path", "C:\\dir"),
            ("u", "\u{e9}\n"),
        ];
        let read: Vec<(&str, &str)> =
            read.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(read, expected);
    }

    #[test]
    fn an_end_inside_an_escape_is_an_end() {
        assert_eq!(parse("a=b\\")["a"], "b");
        assert_eq!(parse("a=\\u00")["a"], "\u{0}");
        assert_eq!(parse("a=\\uzz")["a"], "\u{fffd}");
    }
}
