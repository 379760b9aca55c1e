//! XML documents, which come in rows of their own: one that names column and row, then pieces.
//!
//! A document stored as binary is begun by a select and its pieces are assignments to `XML_REDO`; one stored
//! as text is begun by an update and its pieces are the bare text.

use std::borrow::Cow;

use super::error::StatementError;
use super::last_literal::meant;
use super::literal::Literal;
use super::scanner::Scanner;
use super::written_column::{WrittenColumn, selected, updated};

/// A piece of an XML document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct XmlPiece<'a> {
    /// [`Literal::Text`]; [`Literal::Raw`] for bytes in the character set of the database, which may end
    /// inside a character; [`Literal::Null`] where the column became null.
    pub data: Literal<'a>,
    /// How much the row says that it writes; `None` where it does not say it.
    pub amount: Option<u64>,
}

/// Reads the row that begins a document (operation code 68).
///
/// # Errors
/// When it is anything else than LogMiner writes.
pub fn read_xml_begin(sql: &str) -> Result<WrittenColumn<'_>, StatementError> {
    let mut scanner = Scanner::new(sql);
    if scanner.peek_word().eq_ignore_ascii_case("update") {
        return updated(&mut scanner, |scanner, _| constructed(scanner));
    }
    for keyword in ["xml", "doc", "begin"] {
        scanner.expect_keyword(keyword)?;
    }
    scanner.expect(b':', "a colon")?;
    let written = selected(&mut scanner, |_| Ok(()))?;
    scanner.end()?;
    Ok(written)
}

/// Reads `XMLType(:1)`.
fn constructed(scanner: &mut Scanner<'_>) -> Result<(), StatementError> {
    scanner.expect_keyword("xmltype")?;
    scanner.expect(b'(', "an opening bracket")?;
    scanner.expect(b':', "a bound variable")?;
    scanner.word();
    scanner.expect(b')', "a closing bracket")
}

/// Reads a piece of a document (operation code 70).
///
/// # Errors
/// When it begins as an assignment to `XML_REDO` and is anything else than LogMiner writes. Every other
/// text is a piece itself.
pub fn read_xml_write(sql: &str) -> Result<XmlPiece<'_>, StatementError> {
    let mut scanner = Scanner::new(sql);
    if !(scanner.keyword("xml_redo") && scanner.eat_all(":=")) {
        return Ok(XmlPiece { data: Literal::Text(Cow::Borrowed(sql)), amount: None });
    }
    if scanner.keyword("null") {
        scanner.end()?;
        return Ok(XmlPiece { data: Literal::Null, amount: Some(0) });
    }
    if scanner.keyword("hextoraw") {
        let data = Literal::Raw(Cow::Borrowed(hexadecimal(&mut scanner)?));
        return Ok(XmlPiece { data, amount: amount(&mut scanner)? });
    }
    let written = scanner.quoted_to_last()?;
    let amount = amount(&mut scanner)?;
    Ok(XmlPiece { data: Literal::Text(meant(written, amount)?), amount })
}

/// Reads `('hex')`. Of a piece that continues in further rows, LogMiner leaves the closing quote out.
fn hexadecimal<'a>(scanner: &mut Scanner<'a>) -> Result<&'a str, StatementError> {
    scanner.expect(b'(', "an opening bracket")?;
    scanner.expect(b'\'', "a literal in single quotes")?;
    let at = scanner.at();
    let digits = scanner.word();
    let wrong = digits.bytes().position(|byte| !byte.is_ascii_hexdigit());
    if let Some(wrong) = wrong.or((digits.len() % 2 == 1).then_some(digits.len())) {
        return Err(StatementError::hex(at + wrong));
    }
    scanner.eat(b'\'');
    scanner.expect(b')', "a closing bracket")?;
    Ok(digits)
}

/// Reads `:N` or `amount: N`, if it is there, up to the end of the text.
fn amount(scanner: &mut Scanner<'_>) -> Result<Option<u64>, StatementError> {
    let is_named = scanner.keyword("amount");
    let amount = match scanner.eat(b':') {
        true => Some(scanner.number()?),
        false if is_named => return Err(StatementError::unexpected(scanner.at(), "a colon")),
        false => None,
    };
    scanner.end()?;
    Ok(amount)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(data: &str, amount: Option<u64>) -> XmlPiece<'_> {
        XmlPiece { data: Literal::Text(data.into()), amount }
    }

    #[test]
    fn a_document_stored_as_text_is_begun_by_an_update() {
        let sql = "update \"O\".\"T\" a set a.\"DOC\" = XMLType(:1)  where a.\"ID\" = '1' and a.\"N\" IS NULL;";
        let read = read_xml_begin(sql).unwrap();
        assert_eq!((&*read.column, &*read.row.owner, &*read.row.table), ("DOC", "O", "T"));
        let before = [("ID".into(), Literal::Text("1".into())), ("N".into(), Literal::Null)];
        assert_eq!(read.row.before, before);
    }

    #[test]
    fn quotes_in_a_piece_may_stand_alone() {
        let doubled = "XML_REDO := '<a b=''1''/>'\n amount: 10";
        assert_eq!(read_xml_write(doubled), Ok(text("<a b='1'/>", Some(10))));
        let alone = "XML_REDO := '<a b='1'/>'\n amount: 10";
        assert_eq!(read_xml_write(alone), Ok(text("<a b='1'/>", Some(10))));
        assert_eq!(read_xml_write("XML_REDO := '<a/>'"), Ok(text("<a/>", None)));
    }

    #[test]
    fn the_last_quote_of_hexadecimal_may_be_missing() {
        let piece = XmlPiece { data: Literal::Raw("3c6e".into()), amount: Some(2) };
        assert_eq!(read_xml_write("XML_REDO := HEXTORAW('3c6e):2"), Ok(piece));
        let fault = read_xml_write("XML_REDO := HEXTORAW('3c6'):2").unwrap_err();
        assert_eq!((fault.kind.text(), fault.at), ("bad_hex", 25));
    }

    #[test]
    fn what_is_no_piece_is_refused() {
        for wrong in
            ["XML_REDO := ", "XML_REDO := 1", "XML_REDO := 'x' 9", "XML_REDO := 'x' amount 1"]
        {
            assert!(read_xml_write(wrong).is_err(), "{wrong}");
        }
        for wrong in ["XML DOC BEGIN select", "XMLDOCBEGIN: select \"A\" from \"B\".\"C\"", ""] {
            assert!(read_xml_begin(wrong).is_err(), "{wrong}");
        }
    }
}
