//! Workbooks of Excel, made from their parts.

use std::io::Write;

use zip::{ZipWriter, write::SimpleFileOptions};

use super::*;

const NUMBER_FORMATS: &str = r#"<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">
    <cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>"#;

/// A workbook with these sheets: names, and the XML of their rows.
fn workbook(sheets: &[(&str, &str)]) -> Zeroizing<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let mut add = |name: &str, text: &str| {
        zip.start_file(name, SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    };
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let package = "http://schemas.openxmlformats.org/package/2006/relationships";
    add("[Content_Types].xml", "<Types/>");
    let document = format!(
        "<Relationship Id=\"rId1\" Type=\"{office}/officeDocument\" Target=\"xl/workbook.xml\"/>"
    );
    add(
        "_rels/.rels",
        &format!("<Relationships xmlns=\"{package}\">{document}</Relationships>"),
    );
    let (mut list, mut links) = (String::new(), String::new());
    for (place, (name, rows)) in sheets.iter().enumerate() {
        let number = place + 1;
        list.push_str(&format!(
            "<sheet name=\"{name}\" sheetId=\"{number}\" r:id=\"rId{number}\"/>"
        ));
        links.push_str(&format!(
            "<Relationship Id=\"rId{number}\" Type=\"{office}/worksheet\" Target=\"worksheets/sheet{number}.xml\"/>"
        ));
        let sheet =
            format!("<worksheet xmlns=\"{main}\"><sheetData>{rows}</sheetData></worksheet>");
        add(&format!("xl/worksheets/sheet{number}.xml"), &sheet);
    }
    add(
        "xl/workbook.xml",
        &format!(
            "<workbook xmlns=\"{main}\" xmlns:r=\"{office}\"><sheets>{list}</sheets></workbook>"
        ),
    );
    add(
        "xl/_rels/workbook.xml.rels",
        &format!("<Relationships xmlns=\"{package}\">{links}</Relationships>"),
    );
    add("xl/styles.xml", NUMBER_FORMATS);
    zip.finish().unwrap().into_inner().into()
}

const TABLE: &str = r#"<row r="1"><c r="A1" t="inlineStr"><is><t>age</t></is></c><c r="B1" t="inlineStr"><is><t>seen</t></is></c></row>
    <row r="2"><c r="A2"><v>17.100000000000001</v></c><c r="B2" s="1"><v>45322</v></c></row>
    <row r="3"><c r="A3" t="b"><v>1</v></c></row>"#;

const CSV: &str = "age,seen\n17.1,2024-01-31\ntrue,\n";

fn text(
    bytes: Zeroizing<Vec<u8>>,
    sheet: Option<&str>,
) -> Result<(String, Option<String>), String> {
    let converted = csv(bytes, sheet)?;
    Ok((
        String::from_utf8(converted.text.to_vec()).unwrap(),
        converted.remark,
    ))
}

#[test]
fn first_sheet_that_is_not_empty_is_read() {
    assert_eq!(
        text(workbook(&[("Data", TABLE)]), None).unwrap(),
        (CSV.to_owned(), None)
    );
    let (read, remark) = text(workbook(&[("Notes", ""), ("Data", TABLE)]), None).unwrap();
    assert_eq!(read, CSV);
    assert!(
        remark
            .unwrap()
            .starts_with("read the sheet \"Data\", the first of 2 that is not empty")
    );
}

#[test]
fn sheet_is_chosen_by_name_or_number() {
    let other = r#"<row r="1"><c r="A1"><v>7</v></c></row>"#;
    let sheets = [("Data", TABLE), ("2", other), ("Empty", "")];
    for (wanted, read) in [("Data", CSV), ("1", CSV), ("2", "7\n")] {
        assert_eq!(
            text(workbook(&sheets), Some(wanted)).unwrap(),
            (read.to_owned(), None)
        );
    }
    let error = text(workbook(&sheets), Some("4")).unwrap_err();
    assert_eq!(
        error,
        "there is no sheet \"4\": name one of \"Data\", \"2\", \"Empty\" with --sheet"
    );
    assert!(
        text(workbook(&sheets), Some("3"))
            .unwrap_err()
            .contains("is empty")
    );
}

#[test]
fn far_apart_cells_need_no_memory() {
    let rows = r#"<row r="1"><c r="A1"><v>1</v></c></row><row r="1000000"><c r="B1000000"><v>2</v></c></row>"#;
    let (read, _) = text(workbook(&[("Data", rows)]), None).unwrap();
    assert_eq!(read.trim_end().len(), "1,\n,2".len() + 999_998);
}

#[test]
fn damaged_and_large_workbooks_are_refused() {
    let whole = workbook(&[("Data", TABLE)]);
    let cut = Zeroizing::new(whole[..whole.len() / 2].to_vec());
    assert!(text(cut, None).unwrap_err().contains("cannot be read"));
    let old = Zeroizing::new(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 and nothing else".to_vec());
    assert!(
        text(old, None)
            .unwrap_err()
            .contains("save the table as CSV")
    );
    let large = Zeroizing::new(vec![0; MAX_WORKBOOK_BYTES as usize + 1]);
    assert!(text(large, None).unwrap_err().contains("at most 50 MB"));
}
