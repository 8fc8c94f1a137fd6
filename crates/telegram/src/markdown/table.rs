//! Tables as fixed-width text: Telegram has no table.

use crate::limits::TABLE_PADDED_CHARACTERS_MAX;

/// A table while it is read: the first row is its head.
#[derive(Default)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
    cell: String,
}

impl Table {
    pub(super) fn start_row(&mut self) {
        self.rows.push(Vec::new());
    }

    /// The text of the cell being read.
    pub(super) fn cell(&self) -> &str {
        &self.cell
    }

    /// Adds to the cell being read; a cell is one line.
    pub(super) fn push(&mut self, text: &str) {
        self.cell.extend(text.chars().map(|c| if c == '\n' { ' ' } else { c }));
    }

    pub(super) fn end_cell(&mut self) {
        let cell = std::mem::take(&mut self.cell).trim().to_owned();
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// The lines of the table: padded into columns where that fits a phone, else joined as they are. Empty cells at the
    /// end of a row are left away, so that a wide head cannot multiply with many short rows.
    pub(super) fn render(mut self) -> String {
        for row in &mut self.rows {
            let filled = row.iter().rposition(|cell| !cell.is_empty()).map_or(0, |last| last + 1);
            row.truncate(filled);
        }
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths = vec![0_usize; columns];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let whole = widths.iter().sum::<usize>() + columns.saturating_sub(1) * 3;
        let padded = whole <= TABLE_PADDED_CHARACTERS_MAX;
        let mut lines = Vec::with_capacity(self.rows.len() + 1);
        for (index, row) in self.rows.iter().enumerate() {
            lines.push(if padded { pad(row, &widths) } else { row.join(" | ") });
            if index == 0 && padded {
                lines.push(widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>().join("-+-"));
            }
        }
        lines.join("\n")
    }
}

fn pad(row: &[String], widths: &[usize]) -> String {
    let cells = row.iter().zip(widths).map(|(cell, width)| {
        let missing = width.saturating_sub(cell.chars().count());
        format!("{cell}{}", " ".repeat(missing))
    });
    cells.collect::<Vec<_>>().join(" | ").trim_end().to_owned()
}
