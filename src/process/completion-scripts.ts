// The functions of the completion scripts: find the context of the cursor, and offer its words.

/** The lines before and after the list of words. */
interface Script {
  readonly header: readonly string[]
  readonly body: readonly string[]
}

const linesOf = (source: string) => source.trim().split('\n')

/** In bash, `=` separates words: `--state=active` is three words. */
export const bashScript: Script = {
  header: ['# Completes curtail in bash: source <(curtail completion bash)'],
  body: linesOf(`
_curtail() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} context='' words word
  COMPREPLY=()
  if [ "$COMP_CWORD" -gt 1 ]; then
    context=\${COMP_WORDS[1]}
    word=\${COMP_WORDS[2]}
    if [ "$COMP_CWORD" -gt 2 ] && [ "\${word#-}" = "$word" ] &&
      _curtail_words "$context $word" > /dev/null; then
      context="$context $word"
    fi
  fi
  case $cur in =) prev==; cur= ;; esac
  if [ "$prev" = = ]; then
    if [ "\${COMP_WORDS[COMP_CWORD]}" = = ]; then prev=\${COMP_WORDS[COMP_CWORD-1]}
    else prev=\${COMP_WORDS[COMP_CWORD-2]}; fi
  fi
  words=$(_curtail_words "$context $prev") || words=$(_curtail_words "$context") || return 0
  while IFS= read -r word; do
    word=\${word%%:*}
    if [ "$word" = @file ]; then
      compopt -o filenames 2> /dev/null || :
      while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$cur")
    elif [ -n "$word" ] && [ "\${word#"$cur"}" != "$word" -o -z "$cur" ]; then
      COMPREPLY+=("$word")
    fi
  done <<< "$words"
}
complete -F _curtail curtail
`),
}

/** In zsh, `--state=active` is one word. */
export const zshScript: Script = {
  header: ['#compdef curtail', '# Completes curtail in zsh: source <(curtail completion zsh)'],
  body: linesOf(`
_curtail() {
  local context='' flag='' output line
  local -a items
  if (( CURRENT > 2 )); then
    context=\${words[2]}
    if (( CURRENT > 3 )) && [[ \${words[3]} != -* ]] &&
      _curtail_words "$context \${words[3]}" > /dev/null; then
      context="$context \${words[3]}"
    fi
  fi
  flag=\${words[CURRENT-1]}
  if [[ \${words[CURRENT]} == --*=* ]]; then
    flag=\${words[CURRENT]%%=*}
    compset -P '*='
  fi
  output=$(_curtail_words "$context $flag") || output=$(_curtail_words "$context") || return 1
  for line in \${(f)output}; do
    if [[ $line == @file ]]; then _files; else items+=("$line"); fi
  done
  (( $#items )) && _describe -t words curtail items
}
if [ "$funcstack[1]" = _curtail ]; then _curtail "$@"; else compdef _curtail curtail; fi
`),
}
