//! The grammar of filters.
//!
//! ```text
//! expression := term { "AND" term } | term { "OR" term }      mixing needs parentheses
//! term       := ( "NOT" | "-" ) term | "(" expression ")" | condition
//! condition  := "attributes" ":" key
//!             | "attributes" "." key ( "=" | "!=" ) literal
//!             | "hasPrefix" "(" "attributes" "." key "," literal ")"
//! key        := letters, digits, "_", "-"  |  literal
//! literal    := double-quoted, with the escapes of C and \u, \U
//! ```

use super::Filter;
use crate::pubsub::state::Refusal;

pub(super) fn parse(text: &str) -> Result<Filter, Refusal> {
    let mut parser = Parser { text, at: 0 };
    let filter = parser.expression()?;
    parser.space();
    if parser.rest().is_empty() {
        Ok(filter)
    } else {
        Err(parser.wrong("AND, OR or the end"))
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    /// What is left. `at` lies on a character boundary: it moves by whole characters only.
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    const fn wrong(&self, expected: &'static str) -> Refusal {
        Refusal::Filter {
            at: self.at,
            problem: expected,
        }
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn take(&mut self, token: &str) -> bool {
        self.space();
        let there = self.rest().starts_with(token);
        if there {
            self.at += token.len();
        }
        there
    }

    /// Takes a word that nothing continues: `ANDattributes` does not begin with AND.
    fn word(&mut self, word: &str) -> bool {
        self.space();
        let there = self.rest().strip_prefix(word).is_some_and(|after| {
            !after.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_')
        });
        if there {
            self.at += word.len();
        }
        there
    }

    fn expect(&mut self, token: &str, expected: &'static str) -> Result<(), Refusal> {
        if self.take(token) {
            Ok(())
        } else {
            Err(self.wrong(expected))
        }
    }

    fn expression(&mut self) -> Result<Filter, Refusal> {
        let first = self.term()?;
        if self.word("AND") {
            let all = self.chain(first, "AND")?;
            if self.word("OR") {
                return Err(self.wrong("AND and OR are mixed without parentheses"));
            }
            return Ok(Filter::And(all));
        }
        if self.word("OR") {
            let any = self.chain(first, "OR")?;
            if self.word("AND") {
                return Err(self.wrong("AND and OR are mixed without parentheses"));
            }
            return Ok(Filter::Or(any));
        }
        Ok(first)
    }

    /// The terms behind the first operator, which has been taken.
    fn chain(&mut self, first: Filter, operator: &str) -> Result<Vec<Filter>, Refusal> {
        let mut terms = vec![first, self.term()?];
        while self.word(operator) {
            terms.push(self.term()?);
        }
        Ok(terms)
    }

    fn term(&mut self) -> Result<Filter, Refusal> {
        if self.word("NOT") || self.take("-") {
            return Ok(Filter::Not(Box::new(self.term()?)));
        }
        if self.take("(") {
            let inner = self.expression()?;
            self.expect(")", "expected )")?;
            return Ok(inner);
        }
        self.condition()
    }

    fn condition(&mut self) -> Result<Filter, Refusal> {
        if self.word("hasPrefix") {
            self.expect("(", "expected ( behind hasPrefix")?;
            self.attributes()?;
            self.expect(".", "expected . behind attributes")?;
            let key = self.key()?;
            self.expect(",", "expected , behind the attribute")?;
            let prefix = self.literal()?;
            self.expect(")", "expected )")?;
            return Ok(Filter::Prefix(key, prefix));
        }
        self.attributes()?;
        if self.take(":") {
            return Ok(Filter::Has(self.key()?));
        }
        self.expect(".", "expected : or . behind attributes")?;
        let key = self.key()?;
        if self.take("!=") {
            return Ok(Filter::Unequal(key, self.literal()?));
        }
        self.expect("=", "expected = or != behind the attribute")?;
        Ok(Filter::Equal(key, self.literal()?))
    }

    fn attributes(&mut self) -> Result<(), Refusal> {
        if self.word("attributes") {
            Ok(())
        } else {
            Err(self.wrong("expected attributes"))
        }
    }

    fn key(&mut self) -> Result<String, Refusal> {
        self.space();
        if self.rest().starts_with('"') {
            return self.literal();
        }
        let key: String = self
            .rest()
            .chars()
            .take_while(|next| next.is_ascii_alphanumeric() || "_-".contains(*next))
            .collect();
        if key.is_empty() {
            return Err(self.wrong("expected an attribute key"));
        }
        self.at += key.len();
        Ok(key)
    }

    fn literal(&mut self) -> Result<String, Refusal> {
        self.expect("\"", "expected a string in double quotes")?;
        let mut value = String::new();
        loop {
            let Some(next) = self.rest().chars().next() else {
                return Err(self.wrong("the string does not end"));
            };
            self.at += next.len_utf8();
            match next {
                '"' => return Ok(value),
                '\\' => value.push(self.escape()?),
                plain => value.push(plain),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Refusal> {
        let Some(kind) = self.rest().chars().next() else {
            return Err(self.wrong("the string does not end"));
        };
        if kind.is_digit(8) {
            return self.number(3, 8);
        }
        self.at += kind.len_utf8();
        match kind {
            '"' | '\'' | '\\' | '?' | '`' => Ok(kind),
            'a' => Ok('\u{7}'),
            'b' => Ok('\u{8}'),
            'f' => Ok('\u{c}'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'v' => Ok('\u{b}'),
            'x' | 'X' => self.number(2, 16),
            'u' => self.number(4, 16),
            'U' => self.number(8, 16),
            _ => Err(self.wrong("an unknown escape")),
        }
    }

    fn number(&mut self, digits: usize, radix: u32) -> Result<char, Refusal> {
        let text = self.rest().get(..digits).unwrap_or_default();
        let character = u32::from_str_radix(text, radix)
            .ok()
            .and_then(char::from_u32);
        let Some(character) = character.filter(|_| !text.starts_with('+')) else {
            return Err(self.wrong("an escape that names no character"));
        };
        self.at += digits;
        Ok(character)
    }
}
