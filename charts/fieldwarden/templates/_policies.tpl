{{/* Policies as files: those that are shipped, by name, and the values' own. */}}

{{/* "yes" when any policy comes as a file. */}}
{{- define "fieldwarden.files" -}}
{{- if or (include "fieldwarden.ownFiles" .) .Values.policies.existingConfigMap }}yes{{ end -}}
{{- end -}}

{{/* "yes" when any of them comes with the chart or in the values. */}}
{{- define "fieldwarden.ownFiles" -}}
{{- if or .Values.policies.enabled .Values.policies.inline }}yes{{ end -}}
{{- end -}}

{{/* The names of the policies in `policies.enabled`, as a JSON list. */}}
{{- define "fieldwarden.enabled" -}}
{{- $names := list -}}
{{- range .Values.policies.enabled -}}
{{- $names = append $names (kindIs "string" . | ternary . (dig "name" "" (kindIs "string" . | ternary (dict) .))) -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{/* The names of all policies that come with the chart, as a JSON list. */}}
{{- define "fieldwarden.shipped" -}}
{{- $names := list -}}
{{- range $path, $_ := .Files.Glob "policies/*.yaml" -}}
{{- $names = append $names (base $path | trimSuffix ".yaml") -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{/* (dict "root" $ "entry" one of `policies.enabled`): the text of a shipped policy, in the mode that is asked for. */}}
{{- define "fieldwarden.shippedText" -}}
{{- $name := kindIs "string" .entry | ternary .entry (dig "name" "" (kindIs "string" .entry | ternary (dict) .entry)) -}}
{{- $text := .root.Files.Get (printf "policies/%s.yaml" $name) -}}
{{- $mode := dig "mode" "" (kindIs "string" .entry | ternary (dict) .entry) -}}
{{- if $mode -}}
{{- range regexSplit "(?m)^---[ \t]*$" $text -1 -}}
{{- with fromYaml . -}}
{{- $_ := set .spec "mode" $mode }}
---
{{ toYaml . }}
{{- end -}}
{{- end -}}
{{- else -}}
{{- $text -}}
{{- end -}}
{{- end -}}
