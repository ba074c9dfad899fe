# bash completion of platform. Load it with: source <(platform completion bash)
_platform() {
	local line=${COMP_LINE:0:COMP_POINT} program words=() answer directive one
	IFS=$' \t\n' read -ra words <<<"$line"
	[[ $line == *[[:space:]] ]] && words+=('')
	program=${words[0]/#\~/$HOME}
	COMPREPLY=()
	answer=$("$program" completion words -- "${words[@]:1}" 2>/dev/null) || return 0
	directive=${answer##*$'\n'}
	while IFS= read -r one; do
		one=${one%%$'\t'*}
		# bash takes the name of a flag and its value for two words.
		[[ $one == --*=* && $COMP_WORDBREAKS == *=* ]] && one=${one#*=}
		[[ $one == :[0-9]* ]] || COMPREPLY+=("$one")
	done <<<"$answer"
	if [[ $directive != :0 ]] && type compopt >/dev/null 2>&1; then
		compopt +o default 2>/dev/null
	fi
	return 0
}
complete -o default -F _platform platform
