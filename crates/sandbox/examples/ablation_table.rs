//! Prints the reference page of what each layer stops alone.
//!
//! `cargo run -p thought-sandbox --example ablation_table > docs/reference/jail.md`
#![expect(clippy::print_stdout, reason = "printing the page is what it is for")]

#[expect(dead_code, reason = "the page does not show the commands by which the test tries it")]
#[path = "../tests/ablation/table.rs"]
mod table;

fn main() {
    print!("{}", table::page());
}
