//! Texts of others, cut to a length.

/// The longest attribute value that Pub/Sub takes, in bytes (Pub/Sub quotas).
const MAX_VALUE: usize = 1_024;

/// What stands at the end of a text that was cut.
const CUT: &str = "...";

/// At most as many bytes of the text as an attribute may have, never a part of a character.
pub(crate) fn excerpt(text: &str) -> String {
    if fits(text) {
        return text.to_owned();
    }
    let kept = text.floor_char_boundary(MAX_VALUE - CUT.len());
    let (kept, _) = text.split_at(kept);
    [kept, CUT].concat()
}

/// Whether a text fits an attribute as it is.
pub(crate) const fn fits(text: &str) -> bool {
    text.len() <= MAX_VALUE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_only_when_it_does_not_fit_and_never_inside_a_character() {
        assert_eq!(excerpt(&"x".repeat(1_024)), "x".repeat(1_024));
        assert_eq!(excerpt(&"x".repeat(1_025)), "x".repeat(1_021) + "...");
        // 1,021 is no multiple of two: the last character that fits ends at 1,020.
        assert_eq!(excerpt(&"é".repeat(600)), "é".repeat(510) + "...");
    }
}
