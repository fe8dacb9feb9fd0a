{{/* Combinations that cannot work. All faults are told at once, each in a sentence with the way out. */}}
{{- define "fieldwarden.faults" -}}
{{- $faults := list -}}
{{- $v := .Values -}}
{{- $certificates := $v.certificates -}}
{{- if and (eq $certificates.source "secret") (not $certificates.existingSecret) -}}
{{- $faults = append $faults "certificates.source is secret, but certificates.existingSecret names none: name a Secret with tls.crt, tls.key and ca.crt." -}}
{{- end -}}
{{- if and (ne $certificates.source "secret") $certificates.existingSecret -}}
{{- $faults = append $faults (printf "certificates.existingSecret is set, but certificates.source is %s: set it to secret, or leave out existingSecret." $certificates.source) -}}
{{- end -}}
{{- if and (ne $certificates.source "cert-manager") $certificates.certManager.issuerRef -}}
{{- $faults = append $faults (printf "certificates.certManager.issuerRef is set, but certificates.source is %s: set it to cert-manager, or leave out issuerRef." $certificates.source) -}}
{{- end -}}
{{- with $certificates.certManager.issuerRef -}}
{{- if not .name -}}
{{- $faults = append $faults "certificates.certManager.issuerRef has no name: name an issuer, or leave issuerRef empty to have one made." -}}
{{- end -}}
{{- end -}}
{{- if not (or $v.policies.fromCluster (include "fieldwarden.files" .)) -}}
{{- $faults = append $faults "policies.fromCluster is false and no policy comes as a file: there would be nothing to judge by. Set policies.enabled, policies.inline or policies.existingConfigMap." -}}
{{- end -}}
{{- if and $v.privacy.hashUsers (not $v.privacy.existingSecret) -}}
{{- $faults = append $faults "privacy.hashUsers is true, but privacy.existingSecret names none: make a Secret with a random key of at least 16 bytes in `key`, and name it." -}}
{{- end -}}
{{- if and $v.privacy.existingSecret (not $v.privacy.hashUsers) -}}
{{- $faults = append $faults "privacy.existingSecret is set, but privacy.hashUsers is false: users' names would be written in clear. Set hashUsers, or leave out existingSecret." -}}
{{- end -}}
{{- $shipped := include "fieldwarden.shipped" . | fromJsonArray -}}
{{- $enabled := include "fieldwarden.enabled" . | fromJsonArray -}}
{{- range $enabled -}}
{{- if not (has . $shipped) -}}
{{- $faults = append $faults (printf "policies.enabled: no policy %q is shipped; there are %s." . (join ", " $shipped)) -}}
{{- end -}}
{{- if hasKey $v.policies.inline . -}}
{{- $faults = append $faults (printf "policies.inline: %s is the name of a shipped policy that is enabled: rename yours, or take it out of policies.enabled." .) -}}
{{- end -}}
{{- end -}}
{{- if ne (len $enabled) (len (uniq $enabled)) -}}
{{- $faults = append $faults "policies.enabled names a policy twice: name it once." -}}
{{- end -}}
{{- $webhook := $v.webhook -}}
{{- if lt (int $webhook.graceSeconds) (int $v.webhooks.timeoutSeconds) -}}
{{- $faults = append $faults (printf "webhook.graceSeconds is %d, less than webhooks.timeoutSeconds (%d): a pod that stops would cut calls that the API server still waits for." (int $webhook.graceSeconds) (int $v.webhooks.timeoutSeconds)) -}}
{{- end -}}
{{- $fewest := $webhook.autoscaling.enabled | ternary $webhook.autoscaling.minReplicas $webhook.replicas | int -}}
{{- $stay := $webhook.podDisruptionBudget.minAvailable -}}
{{- $numbered := not (or (kindIs "invalid" $stay) (kindIs "string" $stay)) -}}
{{- if and $webhook.podDisruptionBudget.enabled $numbered (gt $fewest 0) (ge (int $stay) $fewest) -}}
{{- $faults = append $faults (printf "webhook.podDisruptionBudget.minAvailable is %d with %d replicas: no node could ever be drained. Let one pod go, or add replicas." (int $stay) $fewest) -}}
{{- end -}}
{{- if $webhook.autoscaling.enabled -}}
{{- if gt (int $webhook.autoscaling.minReplicas) (int $webhook.autoscaling.maxReplicas) -}}
{{- $faults = append $faults (printf "webhook.autoscaling.minReplicas is %d, more than maxReplicas (%d)." (int $webhook.autoscaling.minReplicas) (int $webhook.autoscaling.maxReplicas)) -}}
{{- end -}}
{{- if not (dig "requests" "cpu" "" $webhook.resources) -}}
{{- $faults = append $faults "webhook.autoscaling is enabled, but webhook.resources.requests.cpu is not set: there would be nothing to measure the load against." -}}
{{- end -}}
{{- end -}}
{{- if and (include "fieldwarden.tells" .) (not $v.journal.enabled) -}}
{{- $faults = append $faults "reports.format or reports.events is set, but journal.enabled is false: what is reported is what the journal holds. Enable it, or report nothing." -}}
{{- end -}}
{{- if $v.reports.definitions -}}
{{- $group := include "fieldwarden.reportGroup" . -}}
{{- $found := include "fieldwarden.reportDefinitions" . | fromYamlArray -}}
{{- if not $group -}}
{{- $faults = append $faults "reports.definitions are given, but reports.format is none: set it to openreports or policyreport, or leave out the definitions." -}}
{{- else if not $found -}}
{{- $faults = append $faults "reports.definitions holds nothing: give the published file with --set-file reports.definitions=FILE." -}}
{{- else -}}
{{- range $number, $definition := $found -}}
{{- if hasKey $definition "Error" -}}
{{- $faults = append $faults (printf "reports.definitions, document %d is not YAML: give the published file with --set-file reports.definitions=FILE." (add1 $number)) -}}
{{- else if or (ne (toString $definition.kind) "CustomResourceDefinition") (ne (toString (dig "spec" "group" "" $definition)) $group) -}}
{{- $faults = append $faults (printf "reports.definitions, document %d is not a CustomResourceDefinition of %s, which reports.format %s is written in." (add1 $number) $group $v.reports.format) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $component := list "webhook" "controller" -}}
{{- $account := (index $v $component).serviceAccount -}}
{{- if not (or $account.create $account.name) -}}
{{- $faults = append $faults (printf "%s.serviceAccount.create is false and its name is empty: name the account to run as." $component) -}}
{{- end -}}
{{- end -}}
{{- if eq (include "fieldwarden.account" (dict "root" . "component" "webhook")) (include "fieldwarden.account" (dict "root" . "component" "controller")) -}}
{{- $faults = append $faults "webhook and controller would run as one service account: the webhook would get the controller's rights. Name two." -}}
{{- end -}}
{{- if has .Release.Namespace (default list $v.webhooks.exemptNamespaces) -}}
{{- $faults = append $faults (printf "webhooks.exemptNamespaces: the release's own namespace %s is always exempt: leave it out." .Release.Namespace) -}}
{{- end -}}
{{- range $faults }}
  - {{ . }}
{{- end -}}
{{- end -}}

{{- define "fieldwarden.check" -}}
{{- with include "fieldwarden.faults" . }}{{ fail (printf "these values do not go together:%s" .) }}{{ end -}}
{{- end -}}
