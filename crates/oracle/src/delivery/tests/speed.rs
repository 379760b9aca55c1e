//! How long a change takes, from its text to the bytes of its record.

use std::time::Instant;

use super::*;

/// Of ten columns, of which two change.
const COLUMNS: [&str; 10] =
    ["ID", "PART", "NAME", "NICK", "GRADE", "PAY", "RATE", "HIRED", "SEEN", "TOKEN"];

const UPDATE: &str = r#"update "HR"."EMP" set "NAME" = 'A new name of some length', "PAY" = '4711.25' where "ID" = '123456' and "PART" = '12' and "NAME" = 'An old name of some length' and "NICK" = UNISTR('nick') and "GRADE" = 'senior    ' and "PAY" = '4710.25' and "RATE" = '1.50000005E+010' and "HIRED" = TO_DATE('2024-05-06 07:08:09', 'YYYY-MM-DD HH24:MI:SS') and "SEEN" = TO_TIMESTAMP('2024-05-06 07:08:09.123456000') and "TOKEN" = HEXTORAW('00ff10a0')"#;

/// `cargo test -p highwater-oracle --release -- --ignored --nocapture ns_a_change`
#[test]
#[ignore = "a measurement"]
#[allow(clippy::print_stdout, reason = "what it is for")]
fn ns_a_change() {
    const CHANGES: u32 = 200_000;
    let layouts = sample::layouts(vec![sample::version(&COLUMNS)]);
    for (routing, output) in [("trail", trail()), ("table", per_table())] {
        let changes: Vec<Change> =
            (0..CHANGES).map(|_| change(Verb::Update, 0x20, UPDATE, Vec::new())).collect();
        let mut delivery = Delivery::new(output, &[]);
        let mut emission = delivery.begin(committed(changes), 0, positions());
        let mut out = Vec::with_capacity(2_000);
        let started = Instant::now();
        while delivery.deliver(&mut emission, &layouts, NOW_MS, &mut out).unwrap()
            == Delivered::Partly
        {
            if out.len() >= 2_000 {
                out.clear();
            }
        }
        println!("{routing}: {} ns a change", started.elapsed().as_nanos() / u128::from(CHANGES));
    }
}
