# Types each line of the standard input into an interactive zsh that has sourced the script $1, then
# presses Tab, and prints the resulting command line.
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1=; unsetopt prompt_cr; autoload -Uz compinit; compinit -u -D; source $1"
zpty -w shell 'show() { print -r -- "<$BUFFER>"; BUFFER=; }; zle -N show; bindkey "^X" show'
zpty -w shell 'setopt no_auto_menu no_list_beep; print rea''dy'
zpty -r shell output '*ready*' || exit 1
while IFS= read -r line; do
  zpty -w -n shell "$line"$'\t\x18'
  zpty -r shell output '*<*>*' || exit 1
  [[ $output =~ '<([^>]*)>[^>]*$' ]] && print -r -- "$match[1]"
done
zpty -d shell
