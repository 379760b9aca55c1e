//! Files in the format of Java's `Properties`.

use std::collections::BTreeMap;

/// Blanks between the parts of a line. Others, such as a no-break space, are parts of a value.
const BLANK: [char; 3] = [' ', '\t', '\u{c}'];

/// Reads keys and values: `key=value`, `key: value` or `key value`, comments behind `#` or `!`, a
/// backslash at a line's end joins the next line, `\n`, `\t`, `\uXXXX` and an escaped separator.
/// A key that stands twice has its last value, as in Java. Files are UTF-8 here.
///
/// # Errors
/// Names the line whose `\u` is none. What else is strange reads as in Java.
pub fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut properties = BTreeMap::new();
    let text = text.replace("\r\n", "\n");
    let mut lines = text.split(['\n', '\r']).zip(1..);
    while let Some((first, number)) = lines.next() {
        let mut line = first.trim_start_matches(BLANK).to_owned();
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        while goes_on(&line) {
            line.pop();
            let (next, _) = lines.next().unwrap_or_default();
            line.push_str(next.trim_start_matches(BLANK));
        }
        let (key, value) = split(&line);
        // Not the text itself: it may be a password.
        let wrong = || format!("line {number} has a \\u that is no character");
        let (key, value) = unescape(key).zip(unescape(value)).ok_or_else(wrong)?;
        properties.insert(key, value);
    }
    Ok(properties)
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
        let found = !escaped && (matches!(char, '=' | ':') || BLANK.contains(char));
        escaped = *char == '\\' && !escaped;
        found
    });
    let Some((end, _)) = end else { return (line, "") };
    let (key, rest) = line.split_at(end);
    let rest = rest.trim_start_matches(BLANK);
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (key, rest.trim_start_matches(BLANK))
}

/// None where a `\u` is no character.
fn unescape(text: &str) -> Option<String> {
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
            Some('u') => plain.push(unicode(&mut chars)?),
            Some(other) => plain.push(other),
            None => {}
        }
    }
    Some(plain)
}

/// The character of four hexadecimal digits, or of two such units of UTF-16.
fn unicode(chars: &mut std::str::Chars<'_>) -> Option<char> {
    let first = unit(chars)?;
    if let Some(char) = char::from_u32(first.into()) {
        return Some(char);
    }
    let escaped = chars.next() == Some('\\') && chars.next() == Some('u');
    let second = if escaped { unit(chars)? } else { return None };
    char::decode_utf16([first, second]).next()?.ok()
}

fn unit(chars: &mut std::str::Chars<'_>) -> Option<u16> {
    let mut unit = 0;
    for _ in 0..4 {
        unit = unit << 4 | u16::try_from(chars.next()?.to_digit(16)?).ok()?;
    }
    Some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_reads_as_java_reads_it() {
        let read = parse(
            "# comment\n! too\n\n  a=1\nb : two words \nc three\nd\\=e=4\nlong=first, \\\n    second\n\
             path=C:\\\\dir\nu=\\u00e9\\n\nempty=\nalone\na=5",
        )
        .unwrap();
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
    fn lines_end_and_blanks_are_as_java_has_them() {
        let read = parse("a=1\rb=2\\\r\n \tc\r\n\r\nd=\u{a0}x\n").unwrap();
        assert_eq!((read["a"].as_str(), read["b"].as_str()), ("1", "2c"));
        assert_eq!(read["d"], "\u{a0}x", "a no-break space may be in a password");
    }

    #[test]
    fn an_end_inside_an_escape_is_an_end() {
        assert_eq!(parse("a=b\\").unwrap()["a"], "b");
    }

    /// As another character it would be another password.
    #[test]
    fn an_escape_that_is_no_character_is_refused_by_its_line() {
        assert_eq!(parse("a=\\ud83d\\ude00").unwrap()["a"], "\u{1f600}");
        for wrong in
            ["\\u00", "\\uzz00", "\\u+0ff", "\\ud83d", "\\ud83dx", "\\ud83d\\u0041", "\\ude00"]
        {
            let error = parse(&format!("a=1\nb=s3cret{wrong}")).unwrap_err();
            assert!(error.starts_with("line 2 ") && !error.contains("s3cret"), "{wrong}: {error}");
        }
    }
}
